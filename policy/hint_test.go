// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

const outlookPolicy = `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h","models":{"*":{"rpm":"600"}}}},
	"limits":{"tree":{"default":{"tokens":"1000","calls":"8","retries":"4","in_flight":"4","ttl":"10m"}},
		"user":{"default":{"tpm":"4000","in_flight":"8"}},"tenant":{"default":{"rpm":"60","mode":"shadow"}},
		"tool":{"default":{"rps":"1"},"search":{"rps":"2"},"browser":{"in_flight":"1"}}}}`

// What is said to be left is what is admitted, to the unit, and after the time that is said more than a quarter is.
func TestOutlook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]WindowKind{Sliding, Continuous, Fixed, Stock}).Draw(t, "kind")
		spec := MeterSpec{Dimension: TPM, Kind: kind, Limit: rapid.Int64Range(1, 2000).Draw(t, "limit"), Window: time.Minute}
		limit := NewLimit(Enforce, rapid.Int64Range(0, 9).Draw(t, "in flight"), NewMeter(spec))
		l, p := NewLedger(policytest.NewStore(), 1), &Policy{}
		path := pathOf(map[Tier]*Limit{TierUser: limit, TierProvider: meters(MeterSpec{Dimension: RPM, Limit: 1e9})}, nil)
		now := int64(time.Hour)
		var open []Reservation
		for range rapid.IntRange(0, 12).Draw(t, "calls") {
			now += rapid.Int64Range(1, 20e9).Draw(t, "dt")
			var r Reservation
			if l.Reserve(now, path, Cost{Requests: 1, Input: rapid.Int64Range(0, 800).Draw(t, "tokens")}, &r).Verdict == Admit {
				open = append(open, r)
			}
			if len(open) > 0 && rapid.Bool().Draw(t, "one ends") {
				l.Settle(now, &open[0], Cost{Requests: 1, Input: rapid.Int64Range(0, 900).Draw(t, "used")})
				open = open[1:]
			}
		}
		fits := func(now int64, cost Cost) bool {
			var r Reservation
			if l.Reserve(now, path, cost, &r).Verdict != Admit {
				return false
			}
			l.giveBack(now, &r)
			return true
		}
		o := l.Outlook(now, p, path)
		if want := 1 + min(limit.InFlight, 1); int64(len(o.Left)) != want {
			t.Fatalf("%+v, want %d", o.Left, want)
		}
		for _, left := range o.Left {
			ask := func(n int64) Cost { return Cost{Input: n} }
			if left.Dimension == InFlight {
				ask = func(n int64) Cost { return Cost{Requests: n} }
			}
			if n := left.Units; n > 0 && !fits(now, ask(n)) || fits(now, ask(n+1)) {
				t.Fatalf("%+v is not what is admitted", left)
			}
			if left.More > 0 && (!left.Little || left.Units*4 > left.Limit) {
				t.Fatalf("%+v: more later, though it is not little", left)
			}
			if after := now + int64(left.More); left.More > 0 && !fits(after, ask(min(NewMeter(spec).Burst(), spec.Limit)/4+1)) {
				t.Fatalf("%+v: there is no more then", left)
			}
		}
	})
}

// A caller is told of its own tiers and of the tools that the policy names, and of nothing that refuses nobody.
func TestOutlookOfAPolicy(t *testing.T) {
	p := compiled(t, outlookPolicy)
	l := NewLedger(policytest.NewStore(), 1)
	now := int64(time.Hour)
	model, _ := p.Providers[0].Models.Lookup("m")
	path := func(tool string) *Path {
		to := new(Path)
		p.Path(to, model, &Caller{Tenant: "a", User: "u", Tree: "t", Tool: tool})
		return to
	}
	var r Reservation
	if d := l.Reserve(now, path("browser"), Cost{Requests: 1, Input: 800}, &r); d.Verdict != Admit {
		t.Fatalf("%+v", d)
	}
	o := l.Outlook(now, p, path("unknown"))
	want := map[Tier]map[Dimension]Remainder{
		TierTree: {
			TreeTokens: {Units: 200, Little: true}, TreeCalls: {Units: 7}, TreeRetries: {Units: 4}, InFlight: {Units: 3},
		},
		TierUser: {TPM: {Units: 200, Little: true, More: 765 * time.Millisecond}, InFlight: {Units: 7}},
	}
	for _, left := range o.Left {
		w, ok := want[left.Tier][left.Dimension]
		if !ok || left.Units != w.Units || left.Little != w.Little || left.More.Round(time.Millisecond) != w.More {
			t.Errorf("%+v, want %+v", left, w)
		}
		delete(want[left.Tier], left.Dimension)
	}
	if len(want[TierTree])+len(want[TierUser]) > 0 {
		t.Errorf("not said: %+v", want)
	}
	if len(o.Cooling) != 1 || o.Cooling[0].Tool != "browser" {
		t.Errorf("cooling: %+v", o.Cooling)
	}
	if o := compiledOutlook(t, l, `{"apiVersion":"weir/v1","mode":"shadow","providers":{"o":{"upstream":"https://h","dialect":"openai"}},
		"limits":{"tree":{"default":{"tokens":"1000"}},"tool":{"browser":{"in_flight":"1"}}}}`); len(o.Left)+len(o.Cooling) > 0 {
		t.Errorf("in shadow mode: %+v", o)
	}
}

func compiledOutlook(t *testing.T, l *Ledger, policy string) Outlook {
	p := compiled(t, policy)
	return l.Outlook(int64(time.Hour), p, userPath(p, Caller{Tenant: "a", User: "u", Tree: "t"}))
}

func TestFanoutFields(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}}}`)
	if p.Fanout != (FanoutBounds{64, time.Minute, 2}) || !p.Endpoints || p.Hints != (HintsSpec{}) {
		t.Errorf("%+v %v %+v", p.Fanout, p.Endpoints, p.Hints)
	}
	p = compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},"endpoints":false,
		"hints":{"header":true},"fanout":{"max":"8","ttl":"5s","per_tree":"1"}}`)
	if p.Fanout != (FanoutBounds{8, 5 * time.Second, 1}) || p.Endpoints || !p.Hints.Header || p.Hints.Inject {
		t.Errorf("%+v %v %+v", p.Fanout, p.Endpoints, p.Hints)
	}
	for fanout, want := range map[string]string{
		`{"max":"5000"}`:   "fanout.max: 5000 is not between 1 and 1024 (write 64)",
		`{"ttl":"1h"}`:     "fanout.ttl: 1h0m0s is not between 1s and 10m0s (write 60s)",
		`{"per_tree":"9"}`: "fanout.per_tree: 9 is not between 1 and 8 (write 2)",
	} {
		s, err := Decode([]byte(`{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h"}},"fanout":` + fanout + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(s); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", fanout, err, want)
		}
	}
}
