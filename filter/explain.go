// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// Headers that tell a caller that asked, where the policy lets it, what its request met, and how long it waited.
const (
	headerExplain = "x-weir-explain"
	headerQueued  = "x-weir-queued"
)

// asksWhy says whether the caller wants to know what became of its request, and may.
func (s *Stream) asksWhy() bool {
	return s.vm.watch.watches() || s.plugin.policy.Explain && s.header(headerExplain) == "1"
}

// explain notes what a request costs, where the figures come from, and what its buckets have before it takes anything: a list of
// structured fields (RFC 9651).
func (s *Stream) explain(now int64, path *policy.Path, q *dialect.Request, c *policy.Cost) {
	if !s.asksWhy() {
		return
	}
	from := "declared"
	if q.Output < 0 {
		from = "default"
	}
	if s.plugin.policy.Learned {
		from = "learned"
	}
	b := param(param(param([]byte("charge"), "requests", c.Requests), "input", c.Input), "output", c.Output)
	b = append(append(b, ";how="...), q.How.String()...)
	b = append(append(b, ";output_from="...), from...)
	for _, m := range s.vm.ledger.Met(now, path) {
		b = append(append(b, ", "...), m.Tier.String()...)
		b = append(append(b, ";dimension="...), m.Dimension.String()...)
		b = param(param(param(b, "limit", m.Limit), "window", int64(m.Window/time.Second)), "left", m.Units)
	}
	s.why = string(b)
}

// param adds a parameter.
//
//go:noinline
func param(b []byte, name string, n int64) []byte {
	b = append(append(append(b, ';'), name...), '=')
	return strconv.AppendInt(b, n, 10)
}

// explained are the headers of an answer for who asked.
func (s *Stream) explained() (headers [][2]string) {
	if s.queued > 0 {
		headers = append(headers, [2]string{headerQueued, strconv.FormatFloat(time.Duration(s.queued).Seconds(), 'f', 3, 64) + "s"})
	}
	if s.why != "" {
		headers = append(headers, [2]string{headerExplain, s.why})
	}
	return headers
}

// waited notes how long a request waited.
func (w *waiter) waited(ns int64) {
	w.countWaited(ns)
	w.stream.logged.waited = ns
	if w.asks {
		w.stream.queued = ns
	}
}
