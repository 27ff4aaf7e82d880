// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/controlplane/history"
)

// maxLocal bounds the counters of an Envoy that are looked at.
const maxLocal = 500

// local is what an Envoy of this machine counts: there is how far estimates were off, which reports do not hold.
type local struct {
	counters *history.Ring

	mu      sync.Mutex
	address string
	problem string
	now     map[string]LocalCounter
}

// A LocalCounter is one of weir's counters of an Envoy.
type LocalCounter struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"` // without weir_
	Total  float64           `json:"total"`            // since Envoy's start
	Recent history.Number    `json:"recent"`           // in the time that is remembered
}

// A LocalView is what an Envoy of this machine says.
type LocalView struct {
	Address  string         `json:"address"` // of its admin interface; empty: it is not there yet
	Problem  string         `json:"problem,omitempty"`
	Counters []LocalCounter `json:"counters"`
}

// look asks Envoy for its counters. Those of before stay if it does not answer.
func (l *local) look(ctx context.Context, now time.Time, address string) {
	found, err := localCounters(ctx, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address, l.problem = address, ""
	if err != nil {
		l.problem = err.Error()
		return
	}
	l.now = found
	sample := map[string]history.Number{}
	for id, c := range found {
		sample[id] = history.Number(c.Total)
	}
	l.counters.Add(now, sample)
}

func localCounters(ctx context.Context, address string) (map[string]LocalCounter, error) {
	if address == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/stats/prometheus?filter=wasmcustom.weir_", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("envoy answers %s", resp.Status)
	}
	return readCounters(io.LimitReader(resp.Body, 4<<20))
}

// readCounters reads weir's counters in the text form of Prometheus.
func readCounters(r io.Reader) (map[string]LocalCounter, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	found := map[string]LocalCounter{}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].Metric {
			if m.Counter == nil || !strings.HasPrefix(name, "weir_") || len(found) >= maxLocal {
				continue
			}
			c, id := LocalCounter{Name: name, Labels: map[string]string{}, Total: m.Counter.GetValue()}, name
			for _, l := range m.Label {
				short := strings.TrimPrefix(l.GetName(), "weir_")
				c.Labels[short] = l.GetValue()
				id += "\x00" + short + "\x00" + l.GetValue()
			}
			found[id] = c
		}
	}
	return found, nil
}

func (l *local) view() *LocalView {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &LocalView{Address: l.address, Problem: l.problem, Counters: []LocalCounter{}}
	for _, id := range slices.Sorted(maps.Keys(l.now)) {
		c := l.now[id]
		c.Recent = l.counters.Grown(id, time.Time{})
		v.Counters = append(v.Counters, c)
	}
	return v
}
