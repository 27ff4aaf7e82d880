// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirproxy/weir/policy/fleet"
)

// handler serves the status address.
func (s *Server) handler() http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collector{s})

	m := http.NewServeMux()
	m.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	m.HandleFunc("GET /readyz", s.serveReady)
	m.HandleFunc("GET /api/status", s.serveJSON)
	m.HandleFunc("GET /{$}", s.servePage)
	m.HandleFunc("POST "+fleet.ReportPath, s.serveReport)
	m.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return guard(m)
}

// guard makes sure that no web page of somebody else reads this one. A browser asks for 127.0.0.1 under the name of any site
// whose DNS says so, but the Host header tells.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		// Reports come under the cluster's name; no page can send them, see fleet.ReportType.
		if at != nil && RequireLoopback(at.String()) == nil && !loopbackName(r.Host) && r.URL.Path != fleet.ReportPath {
			http.Error(w, "ask for localhost or 127.0.0.1", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// loopbackName says whether a Host header, with or without a port, names this machine.
func loopbackName(host string) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host += ":80"
	}
	return RequireLoopback(host) == nil
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.ready(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (s *Server) serveJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(s.Status()); err != nil {
		s.log.Debug("status", "error", err)
	}
}
