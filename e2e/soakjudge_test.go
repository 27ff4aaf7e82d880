// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// judge holds against each other what callers, provider and Envoy have seen, once all is quiet.
func (s *soak) judge() {
	s.idle()
	s.answers()
	s.windows()
	s.flat()
	left := map[string]int64{}
	for i := range 3 {
		tenant := fmt.Sprint("ledger-", i)
		left[tenant] = s.left(tenant)
	}
	s.slotsAreFree()
	s.panics()
	_ = s.envoy.Stop() // which writes the rest of the access log
	s.charges(left)
}

// idle waits until Envoy has nothing in its hands, and everything weir holds for a time is back.
func (s *soak) idle() {
	s.t.Helper()
	eventually(s.t, time.Minute, func() (bool, string) {
		b, err := s.envoy.Get(context.Background(), "/stats?filter=^http.weir.downstream_rq_active$|^cluster.weir_(openai|stormy|anthropic|wild|feral|search).upstream_rq_(pending_)?active$")
		if err != nil {
			return false, err.Error()
		}
		return !regexp.MustCompile(`: [1-9]`).Match(b), string(b)
	})
	time.Sleep(3 * time.Second)
}

// answers looks at what callers got: nobody hangs, and no 5xx is of weir's making.
func (s *soak) answers() {
	kinds, longest := map[string]int{}, time.Duration(0)
	bad := 0
	for _, c := range s.done {
		kinds[fmt.Sprintf("%s %d %s", c.kind, c.status, c.decision)]++
		longest = max(longest, c.took)
		fine := !c.hung && (c.status < 500 || c.provokes) && (c.status > 0 || c.left || c.provokes) && (c.problem == "" || c.provokes)
		if !fine {
			if bad++; bad < 20 {
				s.t.Errorf("%s call of %s: status %d after %v: %s", c.kind, c.tag, c.status, c.took, c.problem)
			}
		}
	}
	s.t.Logf("%d calls, the longest took %v: %v", len(s.done), longest, kinds)
	if bad > 0 || len(s.done) < 500 {
		s.t.Errorf("%d of %d calls went wrong", bad, len(s.done))
	}
}

// windows looks for limits that were exceeded. A call was admitted after it was sent and before it came to the provider: so what
// breaks a limit from the one moment to the other breaks it for certain, whatever stood still or waited.
func (s *soak) windows() {
	for _, l := range []struct {
		tenant string
		limit  func(from, to time.Time) int64
		units  func(*event) int64
	}{
		{"exact", func(time.Time, time.Time) int64 { return 6_000 }, tokensOf},
		{"crowd", func(time.Time, time.Time) int64 { return 60_000 }, tokensOf},
		{"few", func(time.Time, time.Time) int64 { return 30 }, oneCall},
		{"central", func(time.Time, time.Time) int64 { return 40 }, oneCall},
		{"moving", s.most, tokensOf},
	} {
		events, most := s.mock.events(l.tenant), int64(0)
		for i := range events {
			from, sum := events[i].Sent, int64(0)
			for j := 0; j < len(events) && events[j].At-from < int64(time.Minute); j++ {
				if events[j].Sent < from { // it may have been admitted before
					continue
				}
				sum += l.units(&events[j])
				if limit := l.limit(time.Unix(0, from), time.Unix(0, events[j].At)); sum > limit {
					s.t.Errorf("%s: %d in a window from %v, the limit is %d", l.tenant, sum, time.Unix(0, from), limit)
					return
				}
			}
			most = max(most, sum)
		}
		s.t.Logf("%-8s at most %6d in a window, %d calls", l.tenant, most, len(events))
		if len(events) == 0 {
			s.t.Errorf("%s: no calls", l.tenant)
		}
	}
}

// most is the highest limit of the tenant moving that may have been in force in the minute to a time.
func (s *soak) most(from, to time.Time) (most int64) {
	for _, l := range s.inForce {
		if !l.from.After(to) && (l.to.IsZero() || l.to.After(from)) {
			most = max(most, l.tpm)
		}
	}
	return most
}

// slotsAreFree fills all places in flight of tenants.
func (s *soak) slotsAreFree() {
	for tenant, slots := range map[string]int{"ledger-0": 40, "ledger-1": 40, "ledger-2": 40, "crowd": 8} {
		c := call{tenant: tenant, output: 1, headers: map[string]string{"x-mock-latency": "5s", "x-mock-status": "400", "x-user": "last"}}
		if got := send(s.t, s.proxy, repeat(c, slots+2)...); got[400] != slots || got[429] != 2 {
			s.t.Errorf("%s: %v of %d places and two more", tenant, got, slots)
		}
	}
}

// panics looks for what Envoy and the filter should never have to count.
func (s *soak) panics() {
	b, err := s.envoy.Get(context.Background(), "/stats?usedonly&filter=weir_panics|vm_reload|update_rejected|^wasm%5C..*(crash|fail)")
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasSuffix(strings.TrimSpace(line), ": 0") {
			s.t.Errorf("Envoy counts %s", line)
		}
	}
	if strings.Contains(s.log.String(), "panic") || strings.Contains(s.log.String(), "Function: proxy_on") {
		s.t.Error("Envoy's log tells of a panic")
	}
}
