// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/access"
)

// controlFlags say how to ask a control plane.
type controlFlags struct {
	Control   string `help:"Status address of the control plane: host:port, or a URL." default:"127.0.0.1:10088" env:"WEIR_CONTROL" placeholder:"ADDRESS"`
	TokenFile string `name:"token-file" help:"Who asks: the admin's token of this file, or else the reader's; or put the token into WEIR_TOKEN." env:"WEIR_TOKEN_FILE" placeholder:"FILE"`
	CA        string `name:"ca" help:"Who signs the control plane's certificate; asks by https." env:"WEIR_CA" placeholder:"FILE"`
	Cert      string `help:"Client certificate that says who asks." placeholder:"FILE"`
	Key       string `help:"Its key." placeholder:"FILE"`
}

// A control asks a control plane.
type control struct {
	base, token string
	client      *http.Client
}

func (f *controlFlags) dial() (*control, error) {
	c := &control{base: strings.TrimSuffix(f.Control, "/"), token: os.Getenv("WEIR_TOKEN")}
	config, err := f.tls()
	if err != nil {
		return nil, usageError{err}
	}
	if !strings.Contains(c.base, "://") {
		scheme := "http://"
		if f.CA != "" {
			scheme = "https://"
		}
		c.base = scheme + c.base
	}
	u, err := url.Parse(c.base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("--control %q is no address: write 127.0.0.1:10088 or https://HOST:PORT", f.Control)
	}
	if f.TokenFile != "" {
		list, err := os.ReadFile(f.TokenFile)
		if err == nil {
			c.token, err = access.PersonToken(list)
		}
		if err != nil {
			return nil, usagef("--token-file: %s: %w", f.TokenFile, err)
		}
	}
	if host := u.Host; c.token != "" && u.Scheme == "http" && controlplane.RequireLoopback(withPort(host)) != nil {
		return nil, usagef("a token must not travel to %s in plain text: write --ca, or https://", host)
	}
	c.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment}}
	return c, nil
}

func withPort(host string) string {
	if strings.LastIndexByte(host, ':') <= strings.LastIndexByte(host, ']') {
		return host + ":80"
	}
	return host
}

func (f *controlFlags) tls() (*tls.Config, error) {
	c := new(tls.Config)
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in it", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--cert and --key belong together")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// ask sends JSON, if it is not nil, and reads JSON.
func (c *control) ask(ctx context.Context, method, path string, body, to any) error {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		send = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, send)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("no control plane answers at %s (--control): %w", c.base, errors.Unwrap(err))
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return refusedBy(answer.StatusCode, strings.TrimSpace(string(b)))
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s%s is no control plane of this version: %w", c.base, path, err)
	}
	return nil
}

// refusedBy is what a control plane has to say against what it was asked.
func refusedBy(code int, text string) error {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return usagef("%s (--token-file, WEIR_TOKEN, or --cert and --key)", text)
	case http.StatusBadRequest, http.StatusConflict:
		return usageError{errors.New(text)}
	}
	return fmt.Errorf("the control plane says %d: %s", code, text)
}

// status asks for everything.
func (c *control) status(ctx context.Context) (st controlplane.Status, err error) {
	err = c.ask(ctx, http.MethodGet, "/api/status", nil, &st)
	return st, err
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
