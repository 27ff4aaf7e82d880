// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirproxy/weir/policy/central"
	"github.com/weirproxy/weir/policy/fleet"
)

// handler serves the status address.
func (s *Server) handler() http.Handler {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newCollector(s))

	m := http.NewServeMux()
	m.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	m.HandleFunc("GET /readyz", s.serveReady)
	m.HandleFunc("GET /api/status", s.serveJSON)
	s.routePage(m)
	m.HandleFunc("POST "+fleet.ReportPath, s.serveReport)
	m.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	m.HandleFunc("POST "+central.TakePath, s.serveTake)
	m.HandleFunc("POST "+central.SettlePath, s.serveSettle)
	s.adminRoutes(m)
	return s.guard(m)
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
	s.answerJSON(w, s.Status())
}
