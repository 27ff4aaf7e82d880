// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/history"
)

const (
	maxWatchers = 64               // at once
	watchTime   = 5 * time.Minute  // then the browser comes again, and is asked again who it is
	eventTime   = 10 * time.Second // an event may take that; then nobody is reading
)

// serveEvents tells what is new, as server-sent events.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	if !s.board.watch(1) {
		http.Error(w, "too many watch already", http.StatusServiceUnavailable)
		return
	}
	defer s.board.watch(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // or a proxy on the way may collect them
	end := time.NewTimer(watchTime)
	defer end.Stop()
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may go on
	for {
		view, changed := s.board.latest()
		_ = out.SetWriteDeadline(time.Now().Add(eventTime))
		if view != nil {
			fmt.Fprintf(w, "data: %s\n\n", view)
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		}
	}
}

// watch adds n to those that watch, and says whether there is room.
func (b *board) watch(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && b.watchers >= maxWatchers {
		return false
	}
	b.watchers += n
	return true
}

// A History is the time that is remembered of some limits.
type History struct {
	At     []int64                     `json:"at"` // ms since 1970
	Quotas map[string]map[string]Track `json:"quotas"`
}

// A Track is one number over that time; null where it is not known.
type Track []history.Number

// serveHistory gives what is remembered of the limits whose ids are asked for.
func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query()["quota"]
	if len(ids) > boardQuotas {
		http.Error(w, "ask for fewer limits", http.StatusBadRequest)
		return
	}
	g := s.board.gauges
	h := History{At: g.Times(), Quotas: map[string]map[string]Track{}}
	for _, id := range ids {
		tracks := map[string]Track{}
		for _, name := range [...]string{"use", "limit", "granted", "queued", "rate"} {
			if t := g.Read(name + "/" + id); t != nil {
				tracks[name] = t[max(len(t)-len(h.At), 0):] // one more may have come meanwhile
			}
		}
		h.Quotas[id] = tracks
	}
	s.answerJSON(w, h)
}

// A Held is what an Envoy has of a limit.
type Held struct {
	ID        string       `json:"id"`
	Quota     string       `json:"quota"`
	Dimension string       `json:"dimension"`
	Window    string       `json:"window"`
	Kind      string       `json:"kind"`
	Limit     int64        `json:"limit"`
	Holder    fleet.Holder `json:"holder"`
}

// serveEnvoy says what an Envoy has of each of the view's limits.
func (s *Server) serveEnvoy(w http.ResponseWriter, r *http.Request) {
	id, held := r.PathValue("id"), []Held{}
	s.board.mu.Lock()
	quotas := s.board.fleet.Quotas // nobody changes it
	s.board.mu.Unlock()
	for i := range quotas {
		for _, h := range quotas[i].Holders {
			if q := &quotas[i]; h.Node == id {
				held = append(held, Held{q.ID, q.Quota, q.Dimension, q.Window, q.Kind, q.Limit, h})
			}
		}
	}
	s.answerJSON(w, held)
}
