// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"runtime"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/tokens"
)

// A caseEstimate is what a request is taken for where no limit is in its way: what is reserved for it.
type caseEstimate struct {
	input, output int64
	pooled        bool // all were counted in the pool of the model that is expected
	took          time.Duration
}

// estimate sends a request through an Envoy with no limits but those that measure: thrice, and a few times more if it should be faster.
func (w *caseWorld) estimate(c *caseCall) (e caseEstimate, ok bool) {
	m := caseMeasure{count: true}
	var model string
	if v := w.c.Expected["model"]; v != nil {
		model = w.text(v)
		m.models = []string{model}
	}
	o, err := newCaseWorld(w.c, w.module, nil, c.request.Path, m)
	if err != nil {
		w.wrong("%v", err)
		return e, false
	}
	defer o.close()
	var most float64
	if v := w.c.Expected["max_ms"]; v != nil && json.Unmarshal(v, &most) != nil {
		w.notKnown("max_ms %s", v)
	}
	sent := int64(0)
	for i := 0; i < 3 || i < 10 && w.module == nil && most > 0 && e.took.Seconds()*1000 > most; i++ {
		sent++
		began := cpuTime()
		x := o.open(string(rune('a'+i)), c.request, 0)
		if took := cpuTime() - began; i == 0 || took < e.took {
			e.took = took
		}
		if !x.x.Sent {
			w.wrong("without any limit: %s %s", x.became(), x.reason())
			return e, false
		}
	}
	o.process.Sleep(40 * time.Millisecond)
	e.input, e.output, _ = o.charged("a")
	if model != "" {
		e.pooled = sent == o.used(policy.TierProvider, caseKeys{model: model}).units[policy.RPM]
	}
	return e, true
}

// checkEstimate compares all that is expected of an estimate at once.
func checkEstimate(w *caseWorld, _ json.RawMessage) {
	if w.estimated {
		return
	}
	w.estimated = true
	e, ok := w.estimate(w.last())
	if !ok {
		return
	}
	if v := w.c.Expected["estimate_input"]; v != nil {
		w.checkAmount("estimated input", e.input, v)
	}
	if v := w.c.Expected["estimate_output"]; v != nil {
		w.checkAmount("estimated output", e.output, v)
	}
	if v := w.c.Expected["model"]; v != nil && !e.pooled {
		w.wrong("the model was not taken for %s", v)
	}
	var most float64
	_ = json.Unmarshal(w.c.Expected["max_ms"], &most)
	if most > 0 && w.module == nil && e.took.Seconds()*1000 > most {
		w.wrong("it took %v, want %v ms at most", e.took, most)
	}
}

// checkStream compares whether the request is taken for one of a stream.
func checkStream(w *caseWorld, v json.RawMessage) {
	var want bool
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("stream %s", v)
	}
	c := w.last()
	var r dialect.Reader
	d, _ := dialect.Parse(w.policy.Providers[0].Dialect)
	q, _ := r.Open(d.APIOf("POST", c.request.Path), c.body.bytes(), func(string) tokens.Family { return 0 })
	if q.Stream != want {
		w.wrong("stream is %v, want %v", q.Stream, want)
	}
}

// allocated is how many bytes f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
