// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// caseExpectations are the members of expected, but text, which is for people.
var caseExpectations = map[string]func(w *caseWorld, v json.RawMessage){
	"decision":  func(w *caseWorld, v json.RawMessage) { w.checkDecision(w.last(), v) },
	"decisions": checkDecisions,
	"admitted": func(w *caseWorld, v json.RawMessage) {
		w.checkCount("admitted", w.admitted(func(*caseCall) bool { return true }), v)
	},

	"estimate_input": checkEstimate, "estimate_output": checkEstimate, "max_ms": checkEstimate, "model": checkEstimate, "stream": checkStream,

	"charge": checkCharge, "charged": checkCharge, "usage": checkUsage,
	"charge_itpm": func(w *caseWorld, v json.RawMessage) {
		i, _, _ := w.charged(w.last().id)
		w.checkAmount("input charged", i, v)
	},
	"charge_otpm": func(w *caseWorld, v json.RawMessage) {
		_, o, _ := w.charged(w.last().id)
		w.checkAmount("output charged", o, v)
	},
	"requests_used":         checkRequestsUsed,
	"used_after_rejections": func(w *caseWorld, v json.RawMessage) { w.checkCount("tokens used", w.usedByRefused(), v) },
	"used":                  checkUsed,
	"inflight_at_end":       func(w *caseWorld, v json.RawMessage) { w.checkCount("in flight", w.inFlight(), v) },
	"never_negative":        checkNeverNegative,

	"class": checkClass, "aimd": checkAIMD, "dimension": checkDimension, "wait_s": checkWait, "wait_capped": checkCapped,
	"learned_limit": checkLearned, "limit_after": checkLimitAfter, "limit": checkLimits,

	"status": checkStatus, "headers": checkHeaders, "content_type": checkContentType, "body": checkBody, "no_body": checkNoBody,
	"error_is_object": checkErrorIsObject, "json_valid": checkJSON, "no_echo": checkNoEcho, "retry_after_min": checkRetryAfter,
	"remaining_header": checkRemainingHeader, "distinct_values": checkDistinct,

	"no_trap": checkNoTrap, "no_hang": checkNoHang, "no_reset": checkNoReset, "body_unchanged": checkUnchanged,
	"body_unchanged_by_default": checkUnchanged, "path_unchanged": checkPathUnchanged, "consistent_headers": checkConsistent,
	"never_pauses_response": checkNeverPauses, "no_late_header_mutation": checkLateHeaders, "buffered": checkBuffered,
	"max_vm_mb": checkMemory, "max_alloc_mb": checkAlloc, "no_header_injection": checkInjection, "bounded_keys": checkBoundedKeys,
	"documented": checkDocumented, "upstream_sees": checkUpstream, "bound": checkBound,
}

// casePatterns are members with a time or an id in their names.
var casePatterns = []struct {
	name  *regexp.Regexp
	check func(w *caseWorld, arg string, v json.RawMessage)
}{
	{regexp.MustCompile(`^admitted_at_([0-9.]+)$`), func(w *caseWorld, arg string, v json.RawMessage) {
		at, _ := strconv.ParseFloat(arg, 64)
		w.checkCount("admitted", w.admitted(func(c *caseCall) bool { return c.at >= at && c.at < at+0.05 }), v)
	}},
	{regexp.MustCompile(`^admitted_after_(\w+)$`), checkAdmittedAfter},
	{regexp.MustCompile(`^used_after_(\w+)$`), checkUsedAfter},
	{regexp.MustCompile(`^remaining_after_(\w+)$`), func(w *caseWorld, id string, v json.RawMessage) {
		u := w.call(id).left
		w.checkAmount("remaining", u.limits[policy.TPM]-u.units[policy.TPM], v)
	}},
}

// check compares what is expected with what came of the case.
func (w *caseWorld) check() {
	for _, name := range slices.Sorted(maps.Keys(w.c.Expected)) {
		if name == "text" {
			continue
		}
		v := w.c.Expected[name]
		if f := caseExpectations[name]; f != nil {
			f(w, v)
			continue
		}
		known := false
		for _, p := range casePatterns {
			if m := p.name.FindStringSubmatch(name); m != nil {
				known = true
				p.check(w, m[1], v)
				break
			}
		}
		if !known {
			w.notKnown("unknown member of expected: %s", name)
		}
	}
}

// expectsAfter says whether a case expects something of the time right after a call.
func (c *fieldCase) expectsAfter(id string) bool {
	return c.Expected["used_after_"+id] != nil || c.Expected["remaining_after_"+id] != nil
}

// last is the call that a case is about that names none.
func (w *caseWorld) last() *caseCall {
	if len(w.order) == 0 {
		panic("no request")
	}
	return w.order[len(w.order)-1]
}

// matching are the calls that a case names: A, m* or a0..a4.
func (w *caseWorld) matching(name string) (calls []*caseCall) {
	if m := regexp.MustCompile(`^(\D+)(\d+)\.\.(\D+)(\d+)$`).FindStringSubmatch(name); m != nil && m[1] == m[3] {
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[4])
		for i := from; i <= to; i++ {
			calls = append(calls, w.call(fmt.Sprint(m[1], i)))
		}
		return calls
	}
	for _, c := range w.order {
		if ok, _ := path.Match(name, c.id); ok {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		w.notKnown("no request has the id %q", name)
	}
	return calls
}

// checkAmount compares with a number, or with {min, max}.
func (w *caseWorld) checkAmount(what string, got int64, v json.RawMessage) {
	var exact float64
	if json.Unmarshal(v, &exact) == nil {
		if float64(got) != exact {
			w.wrong("%s is %d, want %v", what, got, exact)
		}
		return
	}
	var bounds struct{ Min, Max *float64 }
	if err := strict(v, &bounds); err != nil || bounds.Min == nil && bounds.Max == nil {
		w.notKnown("%s %s: neither a number nor {min, max}", what, v)
		return
	}
	if bounds.Min != nil && float64(got) < *bounds.Min || bounds.Max != nil && float64(got) > *bounds.Max {
		w.wrong("%s is %d, want %s", what, got, v)
	}
}

func (w *caseWorld) checkCount(what string, got int64, v json.RawMessage) {
	w.checkAmount(what, got, v)
}

// wantTrue: a member that can only be true.
func wantTrue(w *caseWorld, v json.RawMessage) {
	if string(v) != "true" {
		w.notKnown("only true is known, not %s", v)
	}
}

// text is a value that is a string.
func (w *caseWorld) text(v json.RawMessage) (s string) {
	if json.Unmarshal(v, &s) != nil {
		w.notKnown("%s is no string", v)
	}
	return strings.TrimSpace(s)
}
