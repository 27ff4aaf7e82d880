// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// cheap says whether a case is so small that the compiled filter runs it, too.
func (c *fieldCase) cheap() bool {
	const most = 1 << 20
	r := c.request()
	switch {
	case r == nil:
		return true
	case r.BodyGen != nil:
		return len(r.BodyGen.Unit)*r.BodyGen.Count < most
	}
	return r.BodyB64Gen == nil
}

// run runs a case and says what is wrong, and what of it is not understood.
func (c *fieldCase) run(m *filtertest.Module) (problems, unknown []string) {
	path := "/v1/chat/completions"
	if r := c.request(); r != nil {
		path = r.Path
	} else if steps, err := unfold(c.Input.Sequence, 0); err == nil {
		path = pathOf(steps, path)
	}
	w, err := newCaseWorld(c, m, c.tiers(), path, caseMeasure{})
	if err != nil {
		return []string{err.Error()}, nil
	}
	defer w.close()
	defer func() {
		if r := recover(); r != nil {
			problems = append(*w.problems, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
		unknown = *w.unknown
	}()
	w.act()
	w.process.Sleep(60 * time.Millisecond) // what was settled is written, what was reserved ahead is given back
	if n := len(w.process.Logs); n > 0 && strings.Contains(strings.Join(w.process.Logs, " "), "panic") {
		w.wrong("logs: %v", w.process.Logs)
	}
	w.check()
	return *w.problems, *w.unknown
}

// pathOf is the path of the first request that is sent a body.
func pathOf(steps []caseStep, otherwise string) string {
	for _, s := range steps {
		if s.Path != "" && s.Method != "GET" {
			return s.Path
		}
	}
	return otherwise
}

func (c *fieldCase) tiers() []caseTier {
	if c.Input.Tier != nil {
		return append([]caseTier{*c.Input.Tier}, c.Input.Tiers...)
	}
	return c.Input.Tiers
}

func (w *caseWorld) tiers() []caseTier { return w.c.tiers() }

// request is the one of a case that is a single one. Members beside it, such as a generated body, are its own.
func (c *fieldCase) request() *caseRequest {
	in := &c.Input
	if in.Sequence != nil {
		return nil
	}
	r := in.caseRequest
	if in.Request != nil {
		r = *in.Request
		if o := &in.caseRequest; o.BodyGen != nil || o.BodyChunks != nil || o.BodyB64Gen != nil || o.BodyText != nil || o.BodyB64 != nil {
			r.BodyGen, r.BodyChunks, r.BodyB64Gen, r.BodyText, r.BodyB64 = o.BodyGen, o.BodyChunks, o.BodyB64Gen, o.BodyText, o.BodyB64
		}
	}
	if r.Path == "" {
		r.Method, r.Path = "POST", "/v1/chat/completions"
		r.Headers = map[string]string{"content-type": "application/json"}
		if r.Body == nil {
			r.Body = json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		}
	}
	return &r
}

// act does what the case's input says.
func (w *caseWorld) act() {
	in := &w.c.Input
	switch {
	case in.Sequence != nil:
		w.play(in.Sequence)
		return
	case in.Variants != nil:
		w.variants()
		return
	}
	c := w.open("", w.c.request(), 0)
	if a := in.Response; a != nil {
		list, err := a.pieces()
		if err != nil {
			w.notKnown("%v", err)
		}
		w.respondHeaders(c, a.Status, a.Headers, len(list) == 0)
		for i, p := range list {
			w.respondBody(c, p, i == len(list)-1 && (a.EndStream == nil || *a.EndStream))
		}
		w.finish(c)
	}
}

// variants sends the body with the members of each variant.
func (w *caseWorld) variants() {
	for i, v := range w.c.Input.Variants {
		r := *w.c.request()
		body := map[string]json.RawMessage{}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			w.notKnown("variants of a body that is no object: %v", err)
		}
		for k, m := range v.Body {
			body[k] = m
		}
		r.Body, _ = json.Marshal(body)
		w.open(fmt.Sprint("variant", i), &r, 0)
	}
}
