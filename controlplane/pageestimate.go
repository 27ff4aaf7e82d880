// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// estimates keeps what Envoys have learned of the counts of models' inputs.
type estimates struct {
	mu    sync.Mutex
	heard map[estimateOf]heardRatio
	of    map[string]int // how many are of a node
}

type estimateOf struct {
	key  policy.Key
	node string
}

type heardRatio struct {
	fleet.Ratio
	at time.Time
}

const (
	maxEstimates = 10_000
	maxOfNode    = 256       // so that no Envoy takes all the room
	estimateTime = time.Hour // what nobody has said since is forgotten, if there is no room
)

// hear takes in a report.
func (e *estimates) hear(now time.Time, m *fleet.FromNode) {
	if len(m.Ratios) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard, e.of = map[estimateOf]heardRatio{}, map[string]int{}
	}
	if len(e.heard)+len(m.Ratios) > maxEstimates || e.of[m.Node]+len(m.Ratios) > maxOfNode {
		e.forget(now)
	}
	for _, r := range m.Ratios {
		k := estimateOf{r.Key, m.Node}
		_, known := e.heard[k]
		if !known && (len(e.heard) >= maxEstimates || e.of[m.Node] >= maxOfNode) {
			continue
		}
		if !known {
			e.of[m.Node]++
		}
		e.heard[k] = heardRatio{r, now}
	}
}

// forget makes room.
func (e *estimates) forget(now time.Time) {
	for k, r := range e.heard {
		if now.Sub(r.at) > estimateTime {
			delete(e.heard, k)
			if e.of[k.node]--; e.of[k.node] == 0 {
				delete(e.of, k.node)
			}
		}
	}
}

// An Estimate is how far the counts of a model's input are off.
type Estimate struct {
	Model  string  `json:"model"`  // PROVIDER/MODEL, or the fingerprint of its key where the policy does not name it
	Named  bool    `json:"named"`  // the policy names it
	Weight int64   `json:"weight"` // of the answers that say so
	Ratio  float64 `json:"ratio"`  // what the provider counts, to what weir does before it is put right
	Spread float64 `json:"spread"` // half of the answers were within this share of Ratio
	Envoys int     `json:"envoys"` // that have learned it
}

// maxEstimateRows bounds the rows of a view, those with the most weight.
const maxEstimateRows = 100

// rows gives what is known of each model: the mean of what Envoys say, by their weights.
func (e *estimates) rows(p *policy.Policy) []Estimate {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := modelNames(p)
	sums := map[policy.Key]*Estimate{}
	for k, r := range e.heard {
		s := sums[k.key]
		if s == nil {
			s = &Estimate{Model: fmt.Sprintf("#%016x", uint64(k.key))}
			if name, ok := names[k.key]; ok {
				s.Model, s.Named = name, true
			}
			sums[k.key] = s
		}
		w := float64(r.Weight) / 1e6 // the ratios are millionths
		s.Weight, s.Ratio, s.Spread, s.Envoys = s.Weight+r.Weight, s.Ratio+w*float64(r.Ratio.Ratio), s.Spread+w*float64(r.Spread), s.Envoys+1
	}
	rows := []Estimate{}
	for _, s := range sums {
		if s.Weight > 0 {
			s.Ratio, s.Spread = s.Ratio/float64(s.Weight), s.Spread/float64(s.Weight)
			rows = append(rows, *s)
		}
	}
	slices.SortFunc(rows, func(a, b Estimate) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Model, b.Model)) })
	return rows[:min(len(rows), maxEstimateRows)]
}

// modelNames are the models that the policy names in full, by the keys under which Envoys learn about them.
func modelNames(p *policy.Policy) map[policy.Key]string {
	names := map[policy.Key]string{}
	if p == nil {
		return names
	}
	for _, pr := range p.Providers {
		for _, m := range pr.Models.Values() {
			if !strings.Contains(m.Pattern, "*") {
				names[p.Hasher.CalibrationKey(pr.Name, m.Pattern)] = pr.Name + "/" + m.Pattern
			}
		}
	}
	return names
}
