// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strconv"
)

// An AgentRow is one line of the reference tables. Times are seconds from the start, to the hundredth; null where there is
// none.
type AgentRow struct {
	Row               string   `json:"row"`
	Client            string   `json:"client"`
	Rejections        int      `json:"rejections"` // 429s of the server
	Retries           int      `json:"retries"`
	Failed            int      `json:"failed"`
	TotalS            *float64 `json:"total_s"`
	CriticalS         *float64 `json:"critical_s"`            // until the last critical call is done
	LongestNormalWait *float64 `json:"longest_normal_wait_s"` // of a normal call, until it is done
}

// hundredths rounds ns to hundredths of a second.
func hundredths(ns int64) *float64 {
	s := math.Round(float64(ns)/1e7) / 100
	return &s
}

// row sums up a run.
func (a *agents) row(name, what string) AgentRow {
	r := AgentRow{Row: name, Client: what, Rejections: a.rejections, Retries: a.retries, Failed: a.failed}
	var total, lastCritical, longest int64
	whole := true
	for _, c := range a.calls {
		total = max(total, c.done)
		if c.class == critical {
			lastCritical, whole = max(lastCritical, c.done), whole && c.done > 0
			continue
		}
		longest = max(longest, c.done-c.arrived)
	}
	r.TotalS = hundredths(total)
	if whole {
		r.CriticalS = hundredths(lastCritical)
	}
	r.LongestNormalWait = hundredths(longest)
	return r
}

func text(s *float64) string {
	if s == nil {
		return "-"
	}
	return strconv.FormatFloat(*s, 'f', 2, 64)
}

// A wanted is what a row must give. Bounds that are equal must be met exactly.
type wanted struct {
	row                string
	rejections         [2]int
	retries            [2]int
	failed             int
	total              [2]float64 // s
	critical, waitMost float64    // s; 0: not asked, or none
	noCritical         bool       // no critical call may get through
}

// check compares a row with what the mission says.
func (w wanted) check(r AgentRow) Check {
	in := func(n int, b [2]int) bool { return b[0] <= n && n <= b[1] }
	same := func(want float64, got *float64) bool { return want == 0 || got != nil && *got == want }
	ok := in(r.Rejections, w.rejections) && in(r.Retries, w.retries) && r.Failed == w.failed &&
		w.total[0] <= *r.TotalS && *r.TotalS <= w.total[1] && same(w.critical, r.CriticalS) && same(w.waitMost, r.LongestNormalWait) &&
		(!w.noCritical || r.CriticalS == nil)
	return Check{What: "row " + w.row, Want: w.text(), Found: foundText(r), OK: ok}
}

func (w wanted) text() string {
	s := fmt.Sprintf("%s 429s, %s retries, %d failed, %s s", span(w.rejections), span(w.retries), w.failed, span(w.total))
	switch {
	case w.noCritical:
		s += ", no critical call done"
	case w.critical > 0:
		s += fmt.Sprintf(", critical %.2f s", w.critical)
	}
	if w.waitMost > 0 {
		s += fmt.Sprintf(", longest normal wait %.2f s", w.waitMost)
	}
	return s
}

func span[T int | float64](b [2]T) string {
	if b[0] == b[1] {
		return fmt.Sprint(b[0])
	}
	return fmt.Sprintf("%v to %v", b[0], b[1])
}

func foundText(r AgentRow) string {
	return fmt.Sprintf("%d 429s, %d retries, %d failed, %s s, critical %s s, longest normal wait %s s",
		r.Rejections, r.Retries, r.Failed, text(r.TotalS), text(r.CriticalS), text(r.LongestNormalWait))
}
