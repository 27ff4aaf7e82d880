// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy/tokens"
)

// checkUsage compares what the provider said of a call's use, read from what was answered.
func checkUsage(w *caseWorld, v json.RawMessage) {
	var want map[string]int64
	if err := json.Unmarshal(v, &want); err != nil {
		w.notKnown("usage: %v", err)
	}
	c := w.last()
	if c.encoding != "" && c.x.Upstream("accept-encoding") == "identity" {
		return // the provider was asked not to compress, and what it sends all the same counts as counted
	}
	u := w.usage(c, c.answer)
	w.compareUsage(want, u)
	if len(c.answer) == 1 || w.c.Input.Response != nil && w.c.Input.Response.BodySplit != "" {
		w.cutEverywhere(want, c)
	}
}

// cutEverywhere reads the same bytes in every two pieces.
func (w *caseWorld) cutEverywhere(want map[string]int64, c *caseCall) {
	whole := []byte{}
	for _, p := range c.answer {
		whole = append(whole, p...)
	}
	before := len(*w.problems)
	for i := range min(len(whole), 4096) {
		if w.compareUsage(want, w.usage(c, [][]byte{whole[:i], whole[i:]})); len(*w.problems) > before {
			w.wrong("cut at %d of %d bytes", i, len(whole))
			return
		}
	}
}

func (w *caseWorld) compareUsage(want map[string]int64, u dialect.Usage) {
	beside := max(u.CacheRead, 0) + max(u.CacheWrite, 0)
	said := func(n int64) int64 { return max(n, 0) }
	input, output := said(u.Input), said(u.Produced())
	for name, n := range want {
		var got []int64 // any of them
		switch name {
		case "input":
			got = []int64{input}
		case "output":
			got = []int64{output}
		case "cache_read":
			got = []int64{said(u.CacheRead)}
		case "cache_creation", "cache_write":
			got = []int64{said(u.CacheWrite)}
		case "total": // what providers call that leaves the cache out, or not
			got = []int64{input + output, input + output + beside}
		case "input_total":
			got = []int64{input + beside}
		case "total_all":
			got = []int64{input + output + beside}
		default:
			w.notKnown("unknown member of usage: %s", name)
			continue
		}
		if got[0] != n && got[len(got)-1] != n {
			w.wrong("usage: %s is %v, want %d", name, got, n)
		}
	}
}

// usage reads an answer as the filter does.
func (w *caseWorld) usage(c *caseCall, answer [][]byte) dialect.Usage {
	var r dialect.Reader
	var a dialect.Answer
	d, _ := dialect.Parse(w.policy.Providers[0].Dialect)
	r.Start(&a, d.APIOf("POST", c.request.Path), tokens.Family(0), c.kind)
	for _, p := range answer {
		a.Feed(p)
	}
	a.End()
	return a.Usage()
}
