// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What became of a call.
const (
	callAdmitted = "admit"
	callRefused  = "reject"
	callWaits    = "queue"
)

func (c *caseCall) became() string {
	switch {
	case c.x.Reply != nil:
		return callRefused
	case c.x.Sent:
		return callAdmitted
	}
	return callWaits
}

// reason is the one that a refused call was told.
func (c *caseCall) reason() string {
	if c.x.Reply == nil {
		return ""
	}
	return c.x.Reply.Headers.Get("x-weir-reason")
}

// A caseVerb is one of the ways in which a case allows a decision: `admit`, `reject non-retryable`, `reject queue_full` …
var caseVerb = regexp.MustCompile(`^(admit|reject|queue|served|capped|counted|overdraft|429)\b *(.*)$`)

// checkDecision compares with a decision, or several that are all right: "reject|queue", "admit or reject, documented".
func (w *caseWorld) checkDecision(c *caseCall, v json.RawMessage) {
	text := w.text(v)
	plain := strings.NewReplacer(", documented", "", "(", "", ")", "", "documented ", "").Replace(text)
	for _, one := range regexp.MustCompile(`\||\bor\b`).Split(plain, -1) {
		m := caseVerb.FindStringSubmatch(strings.TrimSpace(one))
		if m == nil {
			w.notKnown("unknown decision %q", text)
			return
		}
		if w.decided(c, m[1], strings.TrimSpace(m[2]), text) {
			return
		}
	}
	w.wrong("%s: %s %s, want %s", c.id, c.became(), c.reason(), text)
}

func (w *caseWorld) decided(c *caseCall, verb, how, text string) bool {
	became := c.became()
	switch verb {
	case "admit", "served", "capped", "overdraft":
		return became == callAdmitted
	case "queue":
		if after, ok := strings.CutPrefix(how, "then admit at ~"); ok {
			at, err := strconv.ParseFloat(strings.TrimSuffix(after, "s"), 64)
			if err != nil {
				w.notKnown("unknown decision %q", text)
			}
			return w.admittedLater(c, at)
		}
		return became == callWaits || c.waited
	case "counted": // as unrecognised
		return c.reason() == "not_metered" || c.reason() == "unknown_prefix"
	case "429":
		return became == callRefused && c.x.Reply.Status == 429
	}
	return became == callRefused && w.refusedAs(c, how)
}

// refusedAs says whether a refusal is of a kind. One that says that a path is not known is none of a limit.
func (w *caseWorld) refusedAs(c *caseCall, how string) bool {
	switch how {
	case "":
		return !slices.Contains([]string{"not_metered", "unknown_prefix", "internal"}, c.reason())
	case "non-retryable":
		h := c.x.Reply.Headers
		return h.Get("x-should-retry") == "false" && h.Get("retry-after") == "" && h.Get("retry-after-ms") == ""
	}
	return c.reason() == how
}

// admittedLater waits for a call that waits.
func (w *caseWorld) admittedLater(c *caseCall, at float64) bool {
	if c.became() != callWaits {
		return false
	}
	w.sleepTo(at - 0.2)
	early := c.x.Sent
	w.process.Sleep(400 * time.Millisecond)
	return !early && c.x.Sent
}

func checkDecisions(w *caseWorld, v json.RawMessage) {
	var want map[string]json.RawMessage
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("decisions %s", v)
	}
	for name, v := range want {
		for _, c := range w.matching(name) {
			w.checkDecision(c, v)
		}
	}
}

// admitted counts calls that were.
func (w *caseWorld) admitted(which func(c *caseCall) bool) (n int64) {
	for _, c := range w.order {
		if c.became() == callAdmitted && which(c) {
			n++
		}
	}
	return n
}

// checkAdmittedAfter: after the answer to a call, those that were refused come again, and so many get through.
func checkAdmittedAfter(w *caseWorld, id string, v json.RawMessage) {
	n := int64(0)
	w.call(id)
	w.process.Sleep(time.Second)
	for _, c := range slices.Clone(w.order) {
		if c.became() == callRefused && w.open(c.id+"-again", c.request, 0).x.Sent {
			n++
		}
	}
	w.checkCount("admitted after "+id, n, v)
}

// checkUpstream compares which calls left, in their order.
func checkUpstream(w *caseWorld, v json.RawMessage) {
	var want, got []string
	if json.Unmarshal(v, &want) != nil {
		w.notKnown("upstream_sees %s", v)
	}
	for _, c := range w.order {
		if c.x.Sent {
			got = append(got, c.id)
		}
	}
	if !slices.Equal(got, want) {
		w.wrong("upstream sees %v, want %v", got, want)
	}
}

// checkBound knows one form: "low served by t<=aging_s+2 service times".
func checkBound(w *caseWorld, v json.RawMessage) {
	var id string
	var n float64
	if _, err := fmt.Sscanf(w.text(v), "%s served by t<=aging_s+%g service times", &id, &n); err != nil {
		w.notKnown("unknown bound %s", v)
		return
	}
	steps, _ := unfold(w.c.Input.Sequence, 0)
	by := n
	for _, s := range steps {
		if s.Op == "serve_each_for" {
			by = n * s.Seconds
		}
	}
	for _, t := range w.tiers() {
		by += float64(t.AgingS)
	}
	if c := w.call(id); !c.x.Sent || c.sentAt > by {
		w.wrong("%s: %s, sent at %v s, want by %v s", id, c.became(), c.sentAt, by)
	}
}
