// SPDX-License-Identifier: Apache-2.0

// Package access says who may ask a control plane for what: by the certificate of the other end, or by a bearer token. The files
// that it reads are watched; what is broken in a new one leaves the old one in force.
package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Files says where certificates and tokens are.
type Files struct {
	Cert, Key string // the control plane's own, PEM; both or none
	ClientCA  string // whose certificates are those of Envoys and people; PEM
	Tokens    string // see [parseTokens]
}

// Every is how often the files are looked at.
const Every = time.Second

// A Guard knows who may what.
type Guard struct {
	files   Files
	log     *slog.Logger
	now     atomic.Pointer[state]
	problem atomic.Pointer[string] // what is wrong with the files now
}

// A state is what the files said when they were last in order.
type state struct {
	print   string // of what was read
	cert    *tls.Certificate
	clients *x509.CertPool
	tokens  tokens
}

// New reads the files.
func New(f Files, log *slog.Logger) (*Guard, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a certificate needs a key, and a key a certificate")
	}
	if f.ClientCA != "" && f.Cert == "" {
		return nil, errors.New("who is to show a certificate must be shown one: --client-ca needs --tls-cert and --tls-key")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Guard{files: f, log: log}
	s, err := g.read()
	if err != nil {
		return nil, err
	}
	if s.tokens != nil && openToOthers(f.Tokens) {
		log.Warn("others on this machine can read the tokens: chmod 600", "file", f.Tokens)
	}
	g.now.Store(s)
	return g, nil
}

func openToOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// Asks says whether anybody is asked who they are; if not, whoever can connect may do all that needs no admin.
func (g *Guard) Asks() bool { return g.files.ClientCA != "" || g.files.Tokens != "" }

// Encrypts says whether there is TLS.
func (g *Guard) Encrypts() bool { return g.files.Cert != "" }

// Run follows the files until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			g.look()
		}
	}
}

// look takes what is new in the files, if it is in order.
func (g *Guard) look() {
	s, err := g.read()
	if err != nil {
		text := err.Error()
		if old := g.problem.Swap(&text); old == nil || *old != text {
			g.log.Error("certificates or tokens not taken: the old ones stay", "error", err)
		}
		return
	}
	g.problem.Store(nil)
	if s.print != g.now.Load().print {
		g.now.Store(s)
		g.log.Info("new certificates or tokens are in force")
	}
}

// Problem is what is wrong with the files as they are now; empty: nothing.
func (g *Guard) Problem() string {
	if p := g.problem.Load(); p != nil {
		return *p
	}
	return ""
}

// Expires is when the certificate that is in force ends; zero without one.
func (g *Guard) Expires() time.Time {
	if c := g.now.Load().cert; c != nil {
		return c.Leaf.NotAfter
	}
	return time.Time{}
}

func (g *Guard) read() (*state, error) {
	s := new(state)
	var content [4][]byte
	for i, path := range [...]string{g.files.Cert, g.files.Key, g.files.ClientCA, g.files.Tokens} {
		if path == "" {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		content[i] = b
	}
	cert, key, ca, list := content[0], content[1], content[2], content[3]
	s.print = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", content)))
	if g.files.Cert != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", g.files.Cert, g.files.Key, err)
		}
		s.cert = &pair
	}
	if g.files.ClientCA != "" {
		if s.clients = x509.NewCertPool(); !s.clients.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s has no certificates", g.files.ClientCA)
		}
	}
	if g.files.Tokens != "" {
		var err error
		if s.tokens, err = parseTokens(list); err != nil {
			return nil, fmt.Errorf("%s: %w", g.files.Tokens, err)
		}
	}
	return s, nil
}

// TLS is for a server that speaks these protocols; nil if there is none.
func (g *Guard) TLS(protocols ...string) *tls.Config {
	if !g.Encrypts() {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			s := g.now.Load()
			c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, Certificates: []tls.Certificate{*s.cert}}
			if s.clients != nil {
				// Who shows none may have a token, or ask for no more than /livez.
				c.ClientCAs, c.ClientAuth = s.clients, tls.VerifyClientCertIfGiven
			}
			return c, nil
		},
	}
}

// Named says whether the certificate in force is one for a host name or address.
func (g *Guard) Named(host string) bool {
	c := g.now.Load().cert
	return c != nil && c.Leaf.VerifyHostname(host) == nil
}
