// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// reportTime is how long a report may be on its way into this process.
const reportTime = 5 * time.Second

// serveReport takes what a node says. It answers 204, or 200 with a hello to a node that takes another controller for the
// newest; everything else the node gets over xDS.
func (s *Server) serveReport(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != fleet.ReportType {
		http.Error(w, "Content-Type has to be "+fleet.ReportType, http.StatusUnsupportedMediaType)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(reportTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, fleet.MaxMessage))
	if err != nil {
		http.Error(w, "too long, or not whole", http.StatusRequestEntityTooLarge)
		return
	}
	m, err := fleet.DecodeFromNode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case !s.mayBe(r, m.Node):
		http.Error(w, "who asks is not the node that the report is of", http.StatusForbidden)
	case !s.xds.Connected(m.Node) && !s.peers.has(m.Node):
		http.Error(w, "no Envoy of this name takes its configuration here", http.StatusForbidden)
	case !s.limiter.allow(m.Node, time.Now(), s.xds.NodeCount()+s.peers.nodes()):
		http.Error(w, "too many reports", http.StatusTooManyRequests)
	default:
		s.answerReport(w, r, m, body)
	}
}

func (s *Server) answerReport(w http.ResponseWriter, r *http.Request, m *fleet.FromNode, body []byte) {
	s.board.estimates.hear(time.Now(), m)
	var hello bool
	var epoch uint64
	var err error
	if c := s.leading(); c != nil {
		epoch = c.Epoch()
		hello, err = c.Report(r.Context(), m)
	} else {
		hello, epoch, err = s.passOn(r.Context(), m, body)
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case hello:
		_, _ = w.Write(fleet.Hello{Epoch: epoch}.Encode())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// A node sends one report a second and, when its demand moves or calls wait for tokens, some more.
const (
	reportRate  = 20 // a second
	reportBurst = 40
)

// A limiter bounds how many reports a node may send.
type limiter struct {
	mu    sync.Mutex
	nodes map[string]*allowance
}

type allowance struct {
	level float64
	at    time.Time
}

// allow takes one report from a node's allowance. There are known nodes, so there are not many more entries than that.
func (l *limiter) allow(node string, now time.Time, known int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.nodes[node]
	if a == nil {
		if len(l.nodes) > 2*known+100 {
			clear(l.nodes)
		}
		a = &allowance{reportBurst, now}
		l.nodes[node] = a
	}
	a.level = min(reportBurst, a.level+now.Sub(a.at).Seconds()*reportRate)
	a.at = now
	if a.level < 1 {
		return false
	}
	a.level--
	return true
}
