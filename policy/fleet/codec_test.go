// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"reflect"
	"strings"
	"testing"
)

var exampleReport = Report{Node: "a", Incarnation: 1, Number: 2, Epoch: 3, Holdings: []Holding{{Key: "k", Version: 4, Demand: 5, Rate: 6, Cap: 7, Remembered: 8, Spent: 11, Floor: 9, Returned: 10}}}
var exampleShares = Shares{Epoch: 1, Incarnation: 2, Grants: []Grant{{Key: "k", Version: 1, Number: 2, Lease: 3, Forget: 4, Rate: 5, Burst: 6, Cap: 7, Floor: 5, Tokens: 9, Ack: true, Tight: true}}}

func roundTrip[M Message](t *testing.T, m M) {
	t.Helper()
	got, err := Decode[M](Encode(&m))
	if err != nil || !reflect.DeepEqual(*got, m) {
		t.Errorf("%s becomes %+v, %v", Encode(&m), got, err)
	}
}

func TestCodec(t *testing.T) {
	roundTrip(t, exampleReport)
	roundTrip(t, exampleShares)
	roundTrip(t, Hello{7})
	roundTrip(t, Asks{Node: "a", Incarnation: 1, Key: "k", Asks: []Ask{{1, 2, 3}}, Done: []Done{{1, true}, {2, false}}})
	roundTrip(t, Lent{Incarnation: 1, Key: "k", Term: 5, IDs: []uint64{1, 2}})
	roundTrip(t, Draw{Node: "a", Incarnation: 1, Number: 2, Key: "k", Demand: 3, Given: 9, Used: 4, Returned: 5, Want: 6})
	roundTrip(t, Chunk{Incarnation: 1, Number: 2, Key: "k", Given: 3, Term: 4})
	const want = `{"epoch":1,"incarnation":2,"grants":[{"key":"k","version":1,"number":2,"lease":3,"forget":4,"rate":5,"burst":6,"cap":7,"floor":5,"tokens":9,"ack":true,"tight":true}]}`
	if got := string(Encode(&exampleShares)); got != want {
		t.Errorf("%s", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := string(Encode(&exampleShares))
	for what, bad := range map[string]string{
		"space":            good + " ",
		"two messages":     good + good,
		"an unknown field": strings.Replace(good, `"epoch"`, `"x":1,"epoch"`, 1),
		"another order":    `{"incarnation":2,"epoch":1}`,
		"a field twice":    `{"epoch":1,"epoch":1,"incarnation":2}`,
		"another case":     `{"Epoch":1,"incarnation":2}`,
		"an empty list":    `{"epoch":1,"incarnation":2,"grants":[]}`,
		"a zero":           strings.Replace(good, `"tokens":9`, `"tokens":0`, 1),
		"a fraction":       strings.Replace(good, `"rate":5`, `"rate":5.0`, 1),
		"below zero":       strings.Replace(good, `"rate":5`, `"rate":-5`, 1),
		"too large":        strings.Replace(good, `"rate":5`, `"rate":9000000000000000000`, 1),
		"a floor above":    strings.Replace(good, `"floor":5`, `"floor":6`, 1),
		"no key":           strings.Replace(good, `"key":"k"`, `"key":""`, 1),
		"nothing":          "",
		"null":             "null",
		"much":             strings.Repeat(" ", MaxMessage+1),
	} {
		if m, err := Decode[Shares]([]byte(bad)); err == nil {
			t.Errorf("%s: read %+v", what, m)
		}
	}
	twice := exampleReport
	twice.Holdings = append(twice.Holdings, twice.Holdings...)
	if _, err := Decode[Report](Encode(&twice)); err == nil {
		t.Error("a report with a key twice")
	}
}

// Whatever is read is canonical, and neither side breaks over it.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(&exampleReport))
	f.Add(Encode(&exampleShares))
	f.Add(Encode(&Hello{1}))
	f.Add(Encode(&Asks{Node: "a", Incarnation: 1, Key: "k", Asks: []Ask{{1, 2, 3}}, Done: []Done{{1, true}}}))
	f.Add(Encode(&Draw{Node: "a", Incarnation: 1, Number: 2, Key: "k", Demand: 3, Used: 4, Returned: 5, Want: 6}))
	f.Add(Encode(&Lent{Incarnation: 1, Key: "k", Term: 5, IDs: []uint64{1, 2}}))
	f.Add(Encode(&Chunk{Incarnation: 1, Number: 2, Key: "k", Given: 3, Term: 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := Decode[Report](b); err == nil {
			hearReport(t, r)
		}
		if s, err := Decode[Shares](b); err == nil {
			bench := newBench(second)
			bench.node.Take(second, *s)
			if now := bench.share.Terms(2 * second); now.Rate < 0 || bench.meter.level < 0 {
				t.Fatalf("%s gives %+v", b, now)
			}
		}
		if a, err := Decode[Asks](b); err == nil {
			l := NewLender(second, "k", plainQuota, DefaultParams(), true)
			l.Hear(3*second, a)
			l.Serve(4 * second)
			if l.level < 0 || l.level+l.lent > plainQuota.Burst {
				t.Fatalf("%s: a level of %d, %d lent", b, l.level, l.lent)
			}
		}
		if d, err := Decode[Draw](b); err == nil {
			s := NewStock("k", 100, DefaultParams())
			if s.Draw(second, d); s.left < 0 {
				t.Fatalf("%s leaves %d", b, s.left)
			}
		}
	})
}

// hearReport lets a ledger hear a report: it never lends more than there is, whatever a node says.
func hearReport(t *testing.T, r *Report) {
	l := NewLedger(second, "k", plainQuota, DefaultParams(), r.Epoch, true)
	for i := range r.Holdings {
		l.Report(3*second, r, &r.Holdings[i])
	}
	sum := int64(0)
	for _, p := range l.Rebalance(4*second, nil) {
		sum += p.Rate
	}
	if sum > plainQuota.Limit || l.pool < 0 {
		t.Fatalf("%+v gets %d, the pool has %d", r, sum, l.pool)
	}
}
