// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirproxy/weir/policy"
)

func holds(found int64, compare string, n int64) bool {
	switch compare {
	case "<=":
		return found <= n
	case ">=":
		return found >= n
	}
	return found == n
}

// check compares with what happened.
func (w *want) check(r *scenarioRun) Check {
	c := Check{What: r.File + ":" + strconv.Itoa(w.line), Want: w.text}
	if w.ask != nil {
		c.Found, c.OK = w.checkLine()
		return c
	}
	n := r.count(w)
	c.Found, c.OK = fmt.Sprintf("%d %s", n, w.unit), holds(n, w.compare, w.n)
	return c
}

func (w *want) checkLine() (found string, ok bool) {
	a := w.ask
	n, all := int64(a.refused), int64(a.asked)
	if w.admitted {
		n = int64(a.admitted)
	}
	ok = holds(n, w.compare, w.n)
	if w.any {
		ok = n == all && n > 0
	}
	f := a.first.Refusal
	found = fmt.Sprintf("%d of %d admitted", a.admitted, a.asked)
	if a.refused > 0 {
		found += ", refused " + refusalText(f)
	}
	if w.admitted {
		return found, ok
	}
	for _, word := range w.words {
		ok = ok && (word == f.Reason.String() || word == f.Tier.String() || word == f.Dimension.String())
	}
	ok = ok && (!w.waits || about(f.Wait, w.wait)) && (w.left == nil || *w.left == f.Remaining)
	return found, ok
}

// about: buckets round by less than a µs, and people write whole numbers.
func about(found, want time.Duration) bool {
	return found.Round(time.Millisecond) == want
}

func refusalText(f policy.Refusal) string {
	s := f.Reason.String()
	if f.Limit > 0 {
		s += fmt.Sprintf(" %s %s", f.Tier, f.Dimension)
	}
	if f.Reason != policy.RequestTooLarge {
		s += fmt.Sprintf(" wait %v", f.Wait.Round(time.Millisecond))
	}
	return s + fmt.Sprintf(" left %d", f.Remaining)
}
