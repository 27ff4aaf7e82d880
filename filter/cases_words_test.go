// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// checkNoEcho: nothing of the caller's is in the answer: no string of the body, no credential.
func checkNoEcho(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	c, r := w.refusal()
	whole := r.Body + fmt.Sprint(r.Headers)
	var body any
	_ = json.Unmarshal(c.request.Body, &body)
	texts := stringsIn(body)
	for name, value := range c.request.Headers {
		if name != "content-type" {
			texts = append(texts, value)
		}
	}
	for _, s := range texts {
		if len(s) > 4 && s != c.model() && strings.Contains(whole, s) || len(s) > 1 && s == c.model() && strings.Contains(whole, s) {
			w.wrong("the answer repeats %q", s)
		}
	}
}

func stringsIn(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			all = append(all, stringsIn(e)...)
		}
	case map[string]any:
		for k, e := range v {
			if k != "role" && k != "type" {
				all = append(all, stringsIn(e)...)
			}
		}
	}
	return all
}

// checkRetryAfter: a whole number of seconds, never 0, and the exact wait in ms beside it.
func checkRetryAfter(w *caseWorld, v json.RawMessage) {
	_, r := w.refusal()
	var least int
	if json.Unmarshal(v, &least) != nil {
		w.notKnown("retry_after_min %s", v)
	}
	seconds, err := strconv.Atoi(r.Headers.Get("retry-after"))
	ms, errMS := strconv.Atoi(r.Headers.Get("retry-after-ms"))
	if err != nil || errMS != nil || seconds < least || ms < 1 || ms > seconds*1000 {
		w.wrong("retry-after %q, retry-after-ms %q", r.Headers.Get("retry-after"), r.Headers.Get("retry-after-ms"))
	}
}

// checkRemainingHeader looks at what is said to be left in every form.
func checkRemainingHeader(w *caseWorld, v json.RawMessage) {
	_, r := w.refusal()
	found := 0
	for name := range r.Headers {
		if lower := strings.ToLower(name); strings.Contains(lower, "ratelimit") && strings.Contains(lower, "remaining") {
			found++
			if got := r.Headers.Get(name); got != string(v) {
				w.wrong("%s: %s, want %s", name, got, v)
			}
		}
	}
	if _, rest, ok := strings.Cut(r.Headers.Get("ratelimit"), ";r="); ok {
		found++
		if got, _, _ := strings.Cut(rest, ";"); got != string(v) {
			w.wrong("ratelimit: %s, want %s", got, v)
		}
	}
	if found == 0 {
		w.wrong("no header says what is left: %v", r.Headers)
	}
}

// checkDistinct: the header that was collected has so many values, and none below the true wait.
func checkDistinct(w *caseWorld, v json.RawMessage) {
	var least int
	if _, err := fmt.Sscanf(w.text(v), ">=%d", &least); err != nil {
		w.notKnown("unknown distinct_values %s", v)
		return
	}
	steps, _ := unfold(w.c.Input.Sequence, 0)
	for _, s := range steps {
		if s.Op != "collect_header" {
			continue
		}
		values := map[string]bool{}
		for _, c := range w.order {
			if c.x.Reply != nil {
				values[c.x.Reply.Headers.Get(s.Name)] = true
			}
		}
		if len(values) < least || values[""] {
			w.wrong("%s: %v", s.Name, values)
		}
	}
}
