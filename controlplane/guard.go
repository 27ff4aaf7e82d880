// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirproxy/weir/controlplane/access"
)

// forEnvoys is where Envoys ask and report. All else is for people and their tools.
const forEnvoys = "/v1/"

// guard stands before all pages: it keeps out web pages of others, and asks who somebody is.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if code, text := s.foreign(r); code != 0 {
			http.Error(w, text, code)
			return
		}
		id, code, text := s.who(r)
		if code != 0 {
			if code == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Bearer realm="weir"`)
				h.Add("WWW-Authenticate", `Basic realm="weir: a name, and a token as the password"`)
			}
			http.Error(w, text, code)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}

type identityKey struct{}

// mayBe says whether who asks may be a node. Where nobody is asked, anybody may.
func (s *Server) mayBe(r *http.Request, node string) bool {
	id, _ := r.Context().Value(identityKey{}).(access.Identity)
	return node != "" && (!s.config.Access.Asks() || id.MayBe(node))
}

// who says who asks, or why they may not.
func (s *Server) who(r *http.Request) (id access.Identity, code int, text string) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case reads && (r.URL.Path == "/livez" || r.URL.Path == "/readyz"): // for probes, which have no credentials
		return id, 0, ""
	case !s.config.Access.Asks() && (reads || strings.HasPrefix(r.URL.Path, forEnvoys)):
		return id, 0, "" // on loopback only
	case !s.config.Access.Asks():
		return id, http.StatusForbidden, "who changes something is asked who they are: start weir with --token-file"
	}
	id, err := s.config.Access.Who(r.TLS, r.Header.Get("Authorization"))
	if err != nil {
		return id, http.StatusUnauthorized, err.Error()
	}
	need := access.Admin
	switch {
	case strings.HasPrefix(r.URL.Path, forEnvoys):
		need = access.Node
	case reads:
		need = access.Read
	}
	if !id.May(need) {
		return id, http.StatusForbidden, "this certificate or token is for something else"
	}
	return id, 0, ""
}

// foreign says what is wrong with a request that a web page of somebody else has a browser send.
func (s *Server) foreign(r *http.Request) (code int, text string) {
	origin := r.Header.Get("Origin")
	if strings.HasPrefix(r.URL.Path, forEnvoys) {
		// An Envoy's Host is the name of a cluster. But every browser tells that it is one.
		if origin != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			return http.StatusForbidden, "this is for Envoys"
		}
		return 0, ""
	}
	if !s.ours(r) {
		return http.StatusMisdirectedRequest, "ask for localhost or 127.0.0.1, or for a name of the certificate"
	}
	if u, err := url.Parse(origin); origin != "" && (err != nil || u.Host != r.Host) {
		return http.StatusForbidden, "this comes from another site"
	}
	return 0, ""
}

// ours says whether the Host header names this control plane. A browser asks for 127.0.0.1 under the name of any site whose DNS
// says so, but this header tells.
func (s *Server) ours(r *http.Request) bool {
	if loopbackName(r.Host) {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if s.config.Access.Named(host) {
		return true
	}
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return at != nil && RequireLoopback(at.String()) != nil && net.ParseIP(strings.Trim(host, "[]")) != nil // no name, so no DNS
}

// loopbackName says whether a Host header, with or without a port, names this machine.
func loopbackName(host string) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host += ":80"
	}
	return RequireLoopback(host) == nil
}
