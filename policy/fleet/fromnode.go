// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"

	"github.com/weirproxy/weir/policy"
)

// FromNode is all that a node posts at once: about once a second, sooner when its demand changes or a call waits for tokens.
// What counts something counts since the message before it, so Number must tell a message that came twice.
type FromNode struct {
	Node        string
	Incarnation uint64 // greater in each life of the node
	Number      uint64 // greater in each message of this life
	Policy      string // version of the policy that the node has in force

	Report  *Report // nil: none; its Node and Incarnation are those above
	Asks    []Asks
	Draws   []Draw
	Seen    []Seen
	Learned []Learned
	Ratios  []Ratio
	Denials []Denial
	Waits   []Waits
}

// Seen is what happened at one quota since the last message.
type Seen struct {
	Key      string
	Epoch    uint32 // of the adapted rate (see [Rate]) under which the calls that are counted here were admitted
	Denied   int64  // calls
	Queued   int64  // calls that wait now
	Sent     int64  // units that were sent
	Answered int64  // calls that ended with an OK or a rejection
	Rejected int64  // of them, with a rejection that says: too fast, for this limit
	Others   []Refused

	Whole bool  // the node has the limit for itself, and says what counts of it in its window:
	Used  int64 // units
}

// Refused counts refusals of another kind: a [feedback.Class] by its number.
type Refused struct {
	Class uint8
	Calls int64
}

// Learned is a limit that a provider told of in its headers.
type Learned struct {
	Key      string
	Limit    int64 // units per window of the key
	External int64 // units that others use of it
}

// A Ratio is what was learned of the counts of a model's input ([policy.Calibration]).
type Ratio struct {
	Key    policy.Key // see [policy.Hasher.CalibrationKey]
	Weight int64
	Ratio  int64 // millionths
	Spread int64 // millionths
}

// A Denial is calls that were refused, or would have been, since the message before it.
type Denial struct {
	Tier      policy.Tier
	Dimension policy.Dimension
	Reason    policy.Reason
	Verdict   policy.Verdict // what became of them instead
	Shadow    bool           // they were not refused, for the limit only watches
	Key       policy.Key     // of the bucket that refused; 0: none did, or one of many
	Tenant    policy.Key     // whose calls they were; 0: not known
	Class     string
	Limit     int64 // of the last of them; 0: it was no limit
	Calls     int64
}

// Waits are the calls of a class that wait, and those that wait no more, by how long they did: see [WaitBounds].
type Waits struct {
	Class  string
	Now    int64 // that wait at this moment
	Within [len(WaitBounds)]int64
}

// WaitBounds are the waits that are told apart, each up to its bound. (No name has a point in it, for Envoy's names of metrics have.)
var WaitBounds = [...]struct {
	Name string
	Wait int64 // ns
}{{"100ms", 1e8}, {"300ms", 3e8}, {"1s", 1e9}, {"3s", 3e9}, {"10s", 1e10}, {"30s", 3e10}, {"60s", 6e10}, {"more", math.MaxInt64}}

const kindFromNode = 'r'

// Numbers of parts. They never change their meaning.
const (
	partNode = 1 + iota
	partReport
	partHolding
	partAsks
	partDraw
	partSeen
	partLearned
	partRatio
	partDenial
	partWaits
)

// maxParts bounds lists of each kind.
const maxParts = 8192

// Encode gives the bytes of the message.
func (m *FromNode) Encode() []byte {
	w := &writer{b: header(kindFromNode)}
	w.text(m.Node)
	w.uint(m.Incarnation)
	w.uint(m.Number)
	w.text(m.Policy)
	w.end(partNode)
	if r := m.Report; r != nil {
		w.uint(r.Number)
		w.uint(r.Epoch)
		w.flag(r.AckOnly)
		w.flag(r.All)
		w.end(partReport)
		for i := range r.Holdings {
			r.Holdings[i].write(w)
		}
	}
	for i := range m.Asks {
		m.Asks[i].write(w)
	}
	for i := range m.Draws {
		m.Draws[i].write(w)
	}
	for i := range m.Seen {
		m.Seen[i].write(w)
	}
	for _, l := range m.Learned {
		w.text(l.Key)
		w.ints(l.Limit, l.External)
		w.end(partLearned)
	}
	for _, r := range m.Ratios {
		w.uint(uint64(r.Key))
		w.ints(r.Weight, r.Ratio, r.Spread)
		w.end(partRatio)
	}
	for i := range m.Denials {
		m.Denials[i].write(w)
	}
	for i := range m.Waits {
		w.text(m.Waits[i].Class)
		w.int(m.Waits[i].Now)
		w.ints(m.Waits[i].Within[:]...)
		w.end(partWaits)
	}
	return w.b
}

// DecodeFromNode reads a message. One with an amount out of bounds, or with a quota twice, is an error.
func DecodeFromNode(b []byte) (*FromNode, error) {
	b, err := open(b, kindFromNode)
	if err != nil {
		return nil, err
	}
	m, r := new(FromNode), reader{b: b}
	for number, p := r.part(); number != 0; number, p = r.part() {
		m.read(number, &p)
		r.bad = r.bad || p.bad
	}
	if r.bad {
		return nil, errFormat
	}
	m.complete()
	return m, m.check()
}

func (m *FromNode) read(number byte, p *reader) {
	switch number {
	case partNode:
		m.Node, m.Incarnation, m.Number, m.Policy = p.text(), p.uint(), p.uint(), p.text()
	case partReport:
		m.Report = &Report{Number: p.uint(), Epoch: p.uint(), AckOnly: p.flag(), All: p.flag()}
	case partHolding:
		if m.Report == nil {
			p.bad = true
			return
		}
		m.Report.Holdings = append(m.Report.Holdings, readHolding(p))
	case partAsks:
		m.Asks = append(m.Asks, readAsks(p))
	case partDraw:
		m.Draws = append(m.Draws, readDraw(p))
	case partSeen:
		m.Seen = append(m.Seen, readSeen(p))
	case partLearned:
		m.Learned = append(m.Learned, Learned{p.text(), p.int(), p.int()})
	case partRatio:
		m.Ratios = append(m.Ratios, Ratio{policy.Key(p.uint()), p.int(), p.int(), p.int()})
	case partDenial:
		m.Denials = append(m.Denials, readDenial(p))
	case partWaits:
		s := Waits{Class: p.text(), Now: p.int()}
		for i := range s.Within {
			s.Within[i] = p.int()
		}
		m.Waits = append(m.Waits, s)
	}
}

// complete says in each part whose it is.
func (m *FromNode) complete() {
	if m.Report != nil {
		m.Report.Node, m.Report.Incarnation = m.Node, m.Incarnation
	}
	for i := range m.Asks {
		m.Asks[i].Node, m.Asks[i].Incarnation = m.Node, m.Incarnation
	}
	for i := range m.Draws {
		m.Draws[i].Node, m.Draws[i].Incarnation = m.Node, m.Incarnation
	}
}
