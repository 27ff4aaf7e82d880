// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Node is an Envoy's side of the protocol: it reports, and takes grants. It is not safe for concurrent use. All times are
// ns of one monotonic clock of the node, greater than 0.
type Node struct {
	name        string
	incarnation uint64
	params      Params

	epoch    uint64
	number   uint64       // of the last report
	sent     [64]sentTime // by number
	reported int64        // when
	answered uint64       // the last report that a grant answered
	unsure   int64        // until then something may be held that is not known any more
	events   float64      // event reports it may send now
	counted  int64        // when events was brought up to date

	shares []*Share
	byKey  map[string]*Share
}

type sentTime struct {
	number uint64
	at     int64
}

// Event reports: how soon after another, how many a second, how many at once, and after how long a report counts as lost.
const (
	eventGap     = 100 * time.Millisecond
	eventsPerSec = 1.0
	eventsMost   = 4.0
	answerWait   = 700 * time.Millisecond
	denialGap    = time.Second // denials that follow one another more closely are one
)

// NewNode makes a node that holds nothing. incarnation must be greater than in each earlier life of a node of that name: the
// earlier process must be gone, for the controller takes it for dead.
func NewNode(name string, incarnation uint64, p Params) *Node {
	return &Node{name: name, incarnation: incarnation, params: p, byKey: map[string]*Share{}}
}

// Share gives the node's share of a quota; it is made when it is first asked for. The meter must be empty.
func (n *Node) Share(key string, window int64, m Meter) *Share {
	s := n.byKey[key]
	if s == nil {
		s = &Share{key: key, window: window, meter: m}
		n.byKey[key] = s
		n.shares = append(n.shares, s)
	}
	return s
}

// Restore is Share for a node that goes on after a break, in which the meter has held its lease.
func (n *Node) Restore(key string, window int64, m Meter, lease policy.Lease) *Share {
	s := n.Share(key, window, m)
	if s.lease = lease; lease.Epoch != n.epoch {
		s.lease.Version = 0
	}
	return s
}

// Forget drops a share that is not used any more.
func (n *Node) Forget(s *Share) {
	delete(n.byKey, s.key)
	n.shares = slices.DeleteFunc(n.shares, func(o *Share) bool { return o == s })
}

// Resume makes a node go on with an epoch that it has heard of, and with numbers that it has not used.
func (n *Node) Resume(epoch, number uint64) { n.epoch, n.number = epoch, number }

// Unsure tells the node that until then its meters may hold or remember what it has no share of.
func (n *Node) Unsure(until int64) { n.unsure = max(n.unsure, until) }

// Name is the node's.
func (n *Node) Name() string { return n.name }

// Numbers are the epoch and the number of the last report.
func (n *Node) Numbers() (epoch, number uint64) { return n.epoch, n.number }

// Due says whether a report should be sent now: the period has passed, or demand has changed so much that it is worth one.
func (n *Node) Due(now int64) bool {
	since := time.Duration(now - n.reported)
	if n.number == 0 || since >= n.period() {
		return true
	}
	n.events = min(eventsMost, n.events+float64(now-n.counted)/1e9*eventsPerSec)
	n.counted = now
	if since < eventGap || n.events < 1 {
		return false
	}
	due := n.answered < n.number && since > answerWait
	for i := 0; i < len(n.shares) && !due; i++ {
		due = n.shares[i].event(now, n.reported)
	}
	if due {
		n.events--
	}
	return due
}

// period spreads the reports of a fleet by 5 %, so that they do not come in step.
func (n *Node) period() time.Duration {
	h := n.number * 0x9e3779b97f4a7c15
	for i := range len(n.name) {
		h = (h ^ uint64(n.name[i])) * 0x100000001b3
	}
	return n.params.Report * time.Duration(950+h>>33%101) / 1000
}

// Report makes the report that is to be sent now; one without holdings need not be sent,
// but for the first after a [Hello]. ackOnly is for one that a grant asked for: it wants no answer.
func (n *Node) Report(now int64, ackOnly bool) Report {
	n.number++
	n.sent[n.number%uint64(len(n.sent))] = sentTime{n.number, now}
	n.reported = now
	r := Report{Node: n.name, Incarnation: n.incarnation, Number: n.number, Epoch: n.epoch, AckOnly: ackOnly, All: now >= n.unsure}
	for _, s := range n.shares {
		if h, worth := s.report(now, n.params, ackOnly); worth {
			r.Holdings = append(r.Holdings, h)
		}
	}
	if len(r.Holdings) == 0 {
		n.answered = n.number // there is nothing to answer
	}
	return r
}

// Hello takes note of another controller, and says whether to report to it at once. Shares stay until their leases end, but
// no grant of an older controller is taken any more: what is reported from now on cannot be raised behind its back.
func (n *Node) Hello(h Hello) bool {
	if h.Epoch <= n.epoch {
		return false
	}
	n.epoch = h.Epoch
	for _, s := range n.shares {
		s.lease.Version = 0
	}
	return true
}

// Take puts grants in force, and says whether to report at once. What is older than what it has, meant for another life of
// the node, or from a controller that it has not heard of, changes nothing.
func (n *Node) Take(now int64, m Shares) (ack bool) {
	if m.Incarnation != n.incarnation || m.Epoch != n.epoch {
		return false
	}
	for i := range m.Grants {
		g := &m.Grants[i]
		s, sent := n.byKey[g.Key], n.sent[g.Number%uint64(len(n.sent))]
		if s == nil || g.Version <= s.lease.Version || sent.number != g.Number || g.Number == 0 {
			continue
		}
		n.answered = max(n.answered, g.Number)
		s.take(now, sent.at, n.epoch, g)
		ack = ack || g.Ack
	}
	return ack
}
