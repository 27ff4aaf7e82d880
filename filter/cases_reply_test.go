// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/filter/filtertest"
)

// refusal is the answer that the last refused call got from weir itself.
func (w *caseWorld) refusal() (*caseCall, *filtertest.Reply) {
	for i := len(w.order) - 1; i >= 0; i-- {
		if r := w.order[i].x.Reply; r != nil {
			return w.order[i], r
		}
	}
	w.wrong("nothing was refused")
	return w.last(), &filtertest.Reply{Headers: map[string][]string{}}
}

// checkStatus: "413 or 400". What waiting cannot help is worded so that no library takes it for a rate limit.
func checkStatus(w *caseWorld, v json.RawMessage) {
	_, r := w.refusal()
	var one int
	words := fmt.Sprint(r.Status)
	if json.Unmarshal(v, &one) == nil {
		if r.Status != one {
			w.wrong("status %d, want %d", r.Status, one)
		}
		return
	}
	ok := false
	for _, s := range strings.Split(w.text(v), " or ") {
		if _, err := strconv.Atoi(s); err != nil {
			w.notKnown("unknown status %s", v)
		}
		ok = ok || s == words
	}
	if !ok {
		w.wrong("status %s, want %s", words, v)
	}
	if lower := strings.ToLower(r.Body); r.Status != 429 && (strings.Contains(lower, "rate limit") || strings.Contains(lower, "429")) {
		w.wrong("the words say that a retry helps: %s", r.Body)
	}
}

// answered is a header of the answer that the last call got, whoever gave it.
func (w *caseWorld) answered(name string) string {
	c := w.last()
	if c.x.Reply != nil {
		return c.x.Reply.Headers.Get(name)
	}
	for _, h := range c.x.AnswerHeaders() {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

func checkHeaders(w *caseWorld, v json.RawMessage) {
	var want map[string]string
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("headers %s", v)
	}
	for name, value := range want {
		if got := w.answered(name); got != value {
			w.wrong("%s: %q, want %q", name, got, value)
		}
	}
}

func checkContentType(w *caseWorld, v json.RawMessage) {
	if got, _, _ := strings.Cut(w.answered("content-type"), ";"); got != w.text(v) {
		w.wrong("content-type %s, want %s", got, v)
	}
}

// checkBody: all that is wanted is in the body, with these types.
func checkBody(w *caseWorld, v json.RawMessage) {
	_, r := w.refusal()
	var want, got any
	if json.Unmarshal(v, &want) != nil || json.Unmarshal([]byte(r.Body), &got) != nil {
		w.wrong("no JSON: %s", r.Body)
	}
	if !holds(got, want) {
		w.wrong("the body %s has not %s", r.Body, v)
	}
}

func holds(got, want any) bool {
	m, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(got, want)
	}
	g, _ := got.(map[string]any)
	for k, v := range m {
		if !holds(g[k], v) {
			return false
		}
	}
	return g != nil
}

func checkNoBody(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	if _, r := w.refusal(); r.Body != "" || len(r.Headers) == 0 {
		w.wrong("headers %v, body %q", r.Headers, r.Body)
	}
}

func checkErrorIsObject(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	_, r := w.refusal()
	var b struct{ Error map[string]any }
	if err := json.Unmarshal([]byte(r.Body), &b); err != nil || b.Error["message"] == nil || b.Error["type"] == nil || b.Error["code"] == nil {
		w.wrong("%v: %s", err, r.Body)
	}
}

func checkJSON(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	if _, r := w.refusal(); !json.Valid([]byte(r.Body)) {
		w.wrong("no JSON: %s", r.Body)
	}
}
