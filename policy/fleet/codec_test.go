// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy"
	"pgregory.net/rapid"
)

var exampleFrom = FromNode{
	Node: "a", Incarnation: 1, Number: 2, Policy: "v",
	Report: &Report{Node: "a", Incarnation: 1, Number: 2, Epoch: 3, AckOnly: true, Holdings: []Holding{
		{Key: "k", Version: 4, Demand: 5, Rate: 6, Cap: 7, Remembered: 8, Spent: 11, Floor: 9, Returned: 10}, {Key: "l"},
	}},
	Asks:    []Asks{{Node: "a", Incarnation: 1, Key: "k", Asks: []Ask{{1, 2, 3}, {4, 5, 6}}, Done: []Done{{1, true}, {2, false}}}},
	Draws:   []Draw{{Node: "a", Incarnation: 1, Number: 2, Key: "k", Demand: 3, Given: 9, Used: 4, Returned: 5, Want: 6}},
	Seen:    []Seen{{Key: "k", Epoch: 1, Denied: 2, Queued: 3, Sent: 4, Answered: 5, Rejected: 6, Others: []Refused{{2, 1}, {3, 4}}, Whole: true, Used: 7}, {Key: "l"}},
	Learned: []Learned{{"k", 1, 2}},
	Ratios:  []Ratio{{1 << 60, 1, 2, 3}},
	Denials: []Denial{
		{policy.TierUser, policy.TPM, policy.QueueTimeout, policy.Spilled, true, 1 << 63, 1 << 62, "batch", 1000, 3}, {Reason: policy.BadPath, Calls: 1},
	},
	Waits: []Waits{{Class: "batch", Now: 4, Within: [len(WaitBounds)]int64{1, 2, 3, 4, 5, 6, 7, 8}}},
}

var exampleTo = ToNode{
	Shares: Shares{Epoch: 1, Incarnation: 2, Grants: []Grant{
		{Key: "k", Version: 1, Number: 2, Lease: 3, Forget: 4, Rate: 5, Burst: 6, Cap: 7, Floor: 5, Tokens: 9, Ack: true, Tight: true},
	}},
	Lent:   []Lent{{Incarnation: 2, Key: "k", Term: 5, IDs: []uint64{1, 2}}, {Incarnation: 2, Key: "l"}},
	Chunks: []Chunk{{Incarnation: 2, Number: 2, Key: "k", Given: 3, Term: 4}},
	Rates:  []Rate{{"k", 7, policy.Whole / 2}},
}

func TestCodec(t *testing.T) {
	from, err := DecodeFromNode(exampleFrom.Encode())
	if err != nil || !reflect.DeepEqual(*from, exampleFrom) {
		t.Errorf("got %+v, %v", from, err)
	}
	to, err := DecodeToNode(exampleTo.Encode())
	if err != nil || !reflect.DeepEqual(*to, exampleTo) {
		t.Errorf("got %+v, %v", to, err)
	}
	if h, err := DecodeHello(Hello{7}.Encode()); err != nil || h.Epoch != 7 {
		t.Errorf("got %+v, %v", h, err)
	}
	// What is on the wire must not change by accident: nodes and controllers of other versions read it.
	if got, want := string(Hello{300}.Encode()), "w\x01h\x01\x02\xac\x02"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := string((&ToNode{Shares: Shares{Epoch: 1, Incarnation: 2}, Rates: []Rate{{"k", 7, 9}}}).Encode()), "w\x01s\x01\x02\x01\x02\x05\x04\x01k\x07\x09"; got != want {
		t.Errorf("%q", got)
	}
}

// Who is newer may say more: parts that are not known, and fields at the end of those that are.
func TestCodecSkips(t *testing.T) {
	b := append(exampleFrom.Encode(), 200, 3, 1, 2, 3)
	if m, err := DecodeFromNode(b); err != nil || !reflect.DeepEqual(*m, exampleFrom) {
		t.Errorf("an unknown part: %+v, %v", m, err)
	}
	m, err := DecodeToNode([]byte("w\x01s\x01\x03\x01\x02\x09\x05\x05\x01k\x07\x09\x63"))
	if err != nil || m.Shares.Incarnation != 2 || m.Rates[0] != (Rate{"k", 7, 9}) {
		t.Errorf("a further field: %+v, %v", m, err)
	}
	if m, err := DecodeToNode([]byte("w\x01s\x01\x01\x08")); err != nil || m.Shares.Epoch != 8 || m.Shares.Incarnation != 0 {
		t.Errorf("a field less: %+v, %v", m, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := exampleFrom.Encode()
	for i := range len(good) - 1 {
		if m, err := DecodeFromNode(good[:i]); err == nil && len(m.Encode()) > i {
			t.Errorf("read %d of %d bytes: %+v", i, len(good), m)
		}
	}
	for what, change := range map[string]func(*FromNode){
		"no node":         func(m *FromNode) { m.Node = "" },
		"a long node":     func(m *FromNode) { m.Node = strings.Repeat("a", maxName+1) },
		"a key twice":     func(m *FromNode) { m.Report.Holdings[1].Key = "k" },
		"no key":          func(m *FromNode) { m.Report.Holdings[1].Key = "" },
		"a large demand":  func(m *FromNode) { m.Report.Holdings[0].Demand = maxUnits + 1 },
		"a large sum":     func(m *FromNode) { m.Draws[0].Given = 1 << 62 },
		"a long patience": func(m *FromNode) { m.Asks[0].Asks[0].Patience = maxTime + 1 },
		"many rejections": func(m *FromNode) { m.Seen[0].Rejected = maxUnits + 1 },
		"a large limit":   func(m *FromNode) { m.Learned[0].Limit = maxUnits + 1 },
		"many waits":      func(m *FromNode) { m.Waits[0].Within[7] = maxUnits + 1 },
		"a long class":    func(m *FromNode) { m.Denials[0].Class = strings.Repeat("a", maxName+1) },
		"many denials":    func(m *FromNode) { m.Denials[0].Calls = maxUnits + 1 },
		"a large use":     func(m *FromNode) { m.Seen[0].Used = maxUnits + 1 },
		"many parts":      func(m *FromNode) { m.Learned = slicesRepeat(m.Learned[0], maxParts+1) },
	} {
		m, err := DecodeFromNode(good)
		if err != nil {
			t.Fatal(err)
		}
		change(m)
		if got, err := DecodeFromNode(m.Encode()); err == nil {
			t.Errorf("%s: read %+v", what, got)
		}
	}
	to := exampleTo
	to.Shares.Grants = []Grant{{Key: "k", Rate: 1, Floor: 2}}
	if _, err := DecodeToNode(to.Encode()); err == nil {
		t.Error("a floor above the rate")
	}
	for what, b := range map[string]string{
		"nothing": "", "JSON": `{"a":1}`, "another version": "w\x02h\x01\x01\x07", "another message": string(Hello{1}.Encode()),
		"much": string(header(kindFromNode)) + strings.Repeat("\xc8\x00", MaxMessage/2),
	} {
		if _, err := DecodeFromNode([]byte(b)); err == nil {
			t.Errorf("%s: read", what)
		}
	}
}

func slicesRepeat[T any](v T, n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func TestName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Name{
			policy.Tier(rapid.Byte().Draw(t, "tier")), policy.Dimension(rapid.Byte().Draw(t, "dimension")), rapid.Byte().Draw(t, "sub"),
			policy.Key(rapid.Uint64().Draw(t, "key")), policy.Key(rapid.Uint64().Draw(t, "entry")),
			rapid.Int64Range(0, maxTime).Draw(t, "window"), rapid.Int64Range(0, maxTime).Draw(t, "period"),
		}
		if got, ok := ParseName(n.String()); !ok || got != n {
			t.Fatalf("%+v becomes %+v", n, got)
		}
	})
	good := Name{Key: 1, Window: 60_000}.String()
	for _, bad := range []string{"", "k", good + "\x00", good[:len(good)-1], strings.Repeat("a", maxName)} {
		if n, ok := ParseName(bad); ok {
			t.Errorf("%q is %+v", bad, n)
		}
	}
}

// A megabyte of reflection would cost every VM of every Envoy: nothing of this package may need it.
func TestNoJSON(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{join .Imports \" \"}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		if p == "encoding/json" || p == "fmt" || p == "reflect" {
			t.Errorf("imports %s", p)
		}
	}
}

// Whatever is read can be written and read again, and neither side breaks over it.
func FuzzDecode(f *testing.F) {
	f.Add(exampleFrom.Encode())
	f.Add(exampleTo.Encode())
	f.Add(Hello{1}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := DecodeFromNode(b); err == nil {
			again, err := DecodeFromNode(m.Encode())
			if err != nil || !reflect.DeepEqual(m, again) {
				t.Fatalf("%+v becomes %+v, %v", m, again, err)
			}
			hear(t, m)
		}
		if m, err := DecodeToNode(b); err == nil {
			if again, err := DecodeToNode(m.Encode()); err != nil || !bytes.Equal(m.Encode(), again.Encode()) {
				t.Fatalf("%+v becomes %+v, %v", m, again, err)
			}
			take(t, m)
		}
		if h, err := DecodeHello(b); err == nil {
			if again, err := DecodeHello(h.Encode()); err != nil || again != h {
				t.Fatalf("%+v becomes %+v, %v", h, again, err)
			}
		}
	})
}

// hear lets a controller hear a message: it never lends more than there is, whatever a node says.
func hear(t *testing.T, m *FromNode) {
	if r := m.Report; r != nil {
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
	lender, stock := NewLender(second, "k", plainQuota, DefaultParams(), true), NewStock("k", 100, DefaultParams())
	for i := range m.Asks {
		lender.Hear(3*second, &m.Asks[i])
		lender.Serve(4 * second)
		if lender.level < 0 || lender.level+lender.lent > plainQuota.Burst {
			t.Fatalf("%+v: a level of %d, %d lent", m.Asks[i], lender.level, lender.lent)
		}
	}
	for i := range m.Draws {
		if stock.Draw(second, &m.Draws[i]); stock.left < 0 {
			t.Fatalf("%+v leaves %d", m.Draws[i], stock.left)
		}
	}
}

// take lets a node take a message.
func take(t *testing.T, m *ToNode) {
	bench := newBench(second)
	bench.node.Take(second, m.Shares)
	if now := bench.share.Terms(2 * second); now.Rate < 0 || bench.meter.level < 0 {
		t.Fatalf("%+v gives %+v", m, now)
	}
}
