// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Errors of who cannot say who they are.
var (
	ErrNobody   = errors.New("show a client certificate, or a bearer token")
	ErrBadToken = errors.New("this token is not known")
)

// Who says who is asking: by the token if there is one, or else by the certificate, which TLS has checked.
func (g *Guard) Who(t *tls.ConnectionState, authorization string) (Identity, error) {
	s := g.now.Load()
	if authorization != "" && s.tokens != nil {
		token, ok := tokenOf(authorization)
		id, known := s.tokens[sha256.Sum256([]byte(token))]
		if !ok || !known {
			return Identity{}, ErrBadToken
		}
		return id, nil
	}
	if s.clients != nil && t != nil && len(t.VerifiedChains) > 0 {
		return ofCertificate(t.VerifiedChains[0][0]), nil
	}
	return Identity{}, ErrNobody
}

// tokenOf gives the token of a header: a bearer token, or the password that somebody has told a browser, whatever the name.
func tokenOf(authorization string) (token string, ok bool) {
	if token, ok = strings.CutPrefix(authorization, "Bearer "); ok {
		return token, true
	}
	r := http.Request{Header: http.Header{"Authorization": {authorization}}}
	_, token, ok = r.BasicAuth()
	return token, ok
}

// rolePath is what the path of a SPIFFE id has before a role: spiffe://DOMAIN/weir/node/ID, …/weir/admin, …/weir/read.
const rolePath = "/weir/"

// ofCertificate takes a certificate's DNS names and whole URIs for node ids, and reads roles from SPIFFE ids.
func ofCertificate(c *x509.Certificate) Identity {
	i := Identity{name: c.Subject.CommonName, ids: append([]string{}, c.DNSNames...)}
	for _, u := range c.URIs {
		role, isRole := "", false
		if u.Scheme == "spiffe" {
			role, isRole = strings.CutPrefix(u.Path, rolePath)
		}
		id, isNode := strings.CutPrefix(role, "node/")
		switch {
		case isRole && isNode:
			i.ids = append(i.ids, id)
		case isRole && roles[role]&Admin != 0, isRole && role == "read":
			i.roles |= roles[role]
		default:
			i.ids = append(i.ids, u.String())
		}
	}
	if len(i.ids) > 0 {
		i.roles |= Node
	}
	return withoutAny(i)
}

// withoutAny makes sure that no certificate is one of any node.
func withoutAny(i Identity) Identity {
	for n, id := range i.ids {
		if id == "*" {
			i.ids[n] = ""
		}
	}
	return i
}

// AllowNode says why who is at the other end of a gRPC stream may not be the node of this id.
func (g *Guard) AllowNode(ctx context.Context, node string) error {
	if !g.Asks() {
		return nil
	}
	var state *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			state = &info.State
		}
	}
	authorization := ""
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md.Get("authorization")) == 1 {
		authorization = md.Get("authorization")[0]
	}
	id, err := g.Who(state, authorization)
	if err != nil {
		return err
	}
	if !id.MayBe(node) {
		return errors.New("its certificate or token is not this node's")
	}
	return nil
}
