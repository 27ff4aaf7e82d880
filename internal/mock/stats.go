// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"cmp"
	"slices"
)

// Counts are sums over calls.
type Counts struct {
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
	Failed   int64 `json:"failed"`
	Free     int64 `json:"free"`
	Aborted  int64 `json:"aborted"`
	// InputTokens count at arrival, OutputTokens (the actual ones) at the end of
	// the call; both stand in the second of the arrival.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Reserved is input plus declared maximum output, of admitted calls.
	Reserved int64 `json:"reserved"`
}

func (c *Counts) add(d Counts) {
	c.Admitted += d.Admitted
	c.Refused += d.Refused
	c.Failed += d.Failed
	c.Free += d.Free
	c.Aborted += d.Aborted
	c.InputTokens += d.InputTokens
	c.OutputTokens += d.OutputTokens
	c.Reserved += d.Reserved
}

// Second is what arrived within one second.
type Second struct {
	T int64 `json:"t"` // unix
	Counts
}

// Stats is what a mock has seen since its start or its last reset.
type Stats struct {
	Counts
	// InFlight are admitted calls not answered yet, Peak the most at one time.
	InFlight int64 `json:"in_flight"`
	Peak     int64 `json:"peak_in_flight"`
	// Seconds are the last hour's seconds in which something arrived.
	Seconds []Second          `json:"seconds"`
	ByModel map[string]Counts `json:"by_model"`
	ByKey   map[string]Counts `json:"by_key"`
	ByTag   map[string]Counts `json:"by_tag"`
}

// Stats is a copy of the sums.
func (s *Server) Stats() Stats { return s.ledger.stats() }

// Events is a copy of the calls that the ledger still keeps, oldest first.
func (s *Server) Events() []Event { return s.ledger.copyEvents() }

func (l *ledger) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := Stats{
		Counts: l.total, InFlight: l.inFlight, Peak: l.peak,
		Seconds: make([]Second, 0, 64),
		ByModel: l.models.copy(), ByKey: l.keys.copy(), ByTag: l.tags.copy(),
	}
	for _, sec := range l.seconds {
		if sec.T != 0 {
			st.Seconds = append(st.Seconds, sec)
		}
	}
	slices.SortFunc(st.Seconds, func(a, b Second) int { return cmp.Compare(a.T, b.T) })
	return st
}

func (l *ledger) copyEvents() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) < l.keep || l.keep == 0 {
		return slices.Clone(l.events)
	}
	// A full ring: the oldest stands where the next one will.
	oldest := int(l.next % uint64(l.keep))
	return slices.Concat(l.events[oldest:], l.events[:oldest])
}

// maxGroups bounds a grouping; callers choose the names.
const maxGroups = 10_000

// groups are sums by name.
type groups map[string]*Counts

// of finds the sums of a name; beyond the bound all share "(other)".
func (g groups) of(name string) *Counts {
	if c, ok := g[name]; ok {
		return c
	}
	if len(g) >= maxGroups {
		name = "(other)"
		if c, ok := g[name]; ok {
			return c
		}
	}
	c := &Counts{}
	g[name] = c
	return c
}

func (g groups) copy() map[string]Counts {
	m := make(map[string]Counts, len(g))
	for name, c := range g {
		m[name] = *c
	}
	return m
}
