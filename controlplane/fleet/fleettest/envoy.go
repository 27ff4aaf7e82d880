// SPDX-License-Identifier: Apache-2.0

// Package fleettest has a node of a fleet without an Envoy: the protocol of policy/fleet with meters in memory. Tests and
// `weir bench fleet` have many of them talk to a controller.
package fleettest

import (
	"time"

	"github.com/weirproxy/weir/policy/fleet"
)

// An Envoy is one node. It is not safe for concurrent use; times are ns of one clock of the node, greater than 0.
type Envoy struct {
	Name        string
	Incarnation uint64
	Seen        []fleet.Seen  // goes with the next message
	Ratios      []fleet.Ratio // likewise
	Denials     []fleet.Denial
	Waits       []fleet.Waits
	Applied     uint64 // documents that it has taken
	Rates       map[string]fleet.Rate

	params    fleet.Params
	node      *fleet.Node
	number    uint64
	ack       bool
	hello     bool
	shares    []*Share
	borrowers map[string]*fleet.Borrower
	admitted  []uint64 // calls that tokens came for
	stashes   []*stash
}

// A Share is a quota that refills, as the node uses it.
type Share struct {
	*fleet.Share
	Meter *fleet.Local
	Key   string
}

type stash struct {
	*fleet.Stash
	key  string
	told int64
}

// New makes a node that holds nothing.
func New(name string, incarnation uint64, p fleet.Params) *Envoy {
	return &Envoy{
		Name: name, Incarnation: incarnation, params: p, node: fleet.NewNode(name, incarnation, p), borrowers: map[string]*fleet.Borrower{},
		Rates: map[string]fleet.Rate{},
	}
}

// Share gives the node a quota that is shared, or lent by the token: that is for the controller to say.
func (e *Envoy) Share(now int64, key string, window, memory int64) *Share {
	m := fleet.NewLocal(now, window, memory)
	s := &Share{e.node.Share(key, window, m), m, key}
	e.shares = append(e.shares, s)
	return s
}

// Stash gives the node a stock.
func (e *Envoy) Stash(key string) *fleet.Stash {
	s := &stash{Stash: fleet.NewStash(e.Name, e.Incarnation, key), key: key}
	e.stashes = append(e.stashes, s)
	return s.Stash
}

// ByToken says whether a quota is lent by the token.
func (e *Envoy) ByToken(key string) bool { return e.borrowers[key] != nil }

// Want has a call wait for the tokens of a quota that is lent by the token; see [fleet.Borrower.Want].
func (e *Envoy) Want(now int64, key string, units int64, patience time.Duration) (call uint64, admitted bool) {
	return e.borrowers[key].Want(now, units, int64(patience))
}

// Admitted gives the number of calls that tokens came for, and forgets it.
func (e *Envoy) Admitted() int {
	n := len(e.admitted)
	e.admitted = e.admitted[:0]
	return n
}

// Offer counts units that callers want of a share, and takes what it allows.
func (e *Envoy) Offer(now int64, s *Share, units, calls int64) (taken int64) {
	s.Settle(now)
	taken = min(units, s.Meter.Room(now))
	s.Share.Offer(now, units, calls, taken < units)
	if taken > 0 {
		s.Meter.Take(now, taken)
	}
	return taken
}

// Message gives what is to be posted now; nil for nothing.
func (e *Envoy) Message(now int64) []byte {
	m := fleet.FromNode{Node: e.Name, Incarnation: e.Incarnation, Seen: e.Seen, Ratios: e.Ratios, Denials: e.Denials, Waits: e.Waits}
	if ackOnly := e.ack && !e.hello; e.ack || e.hello || e.node.Due(now) {
		e.ack, e.hello = false, false
		if r := e.node.Report(now, ackOnly); len(r.Holdings) > 0 {
			m.Report = &r
		}
	}
	for _, b := range e.borrowers {
		if a := b.Message(now); a != nil {
			m.Asks = append(m.Asks, *a)
		}
	}
	for _, s := range e.stashes {
		if now-s.told >= int64(e.params.Report) {
			s.told = now
			m.Draws = append(m.Draws, *s.Draw(now))
		}
	}
	if m.Report == nil && len(m.Asks)+len(m.Draws)+len(m.Seen)+len(m.Ratios)+len(m.Denials)+len(m.Waits) == 0 {
		return nil
	}
	e.Seen, e.Ratios, e.Denials, e.Waits = nil, nil, nil, nil
	e.number++
	m.Number = e.number
	return m.Encode()
}

// DrawNow has the next message draw from all stocks.
func (e *Envoy) DrawNow() {
	for _, s := range e.stashes {
		s.told = 0
	}
}

// Answer takes what a message was answered with.
func (e *Envoy) Answer(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	h, err := fleet.DecodeHello(b)
	e.hello = e.node.Hello(h) || e.hello
	return err
}

// Take takes a document.
func (e *Envoy) Take(now int64, document []byte) error {
	m, err := fleet.DecodeToNode(document)
	if err != nil {
		return err
	}
	e.Applied++
	e.ack = e.node.Take(now, m.Shares) || e.ack
	for _, l := range m.Lent {
		if m.Shares.Incarnation != e.Incarnation {
			continue
		}
		b := e.borrowers[l.Key]
		if b == nil {
			b = fleet.NewBorrower(e.Name, e.Incarnation, l.Key, e.params)
			e.borrowers[l.Key] = b
		}
		e.admitted = append(e.admitted, b.Take(now, &l)...)
	}
	for _, c := range m.Chunks {
		for _, s := range e.stashes {
			if s.key == c.Key {
				s.Give(now, &c)
			}
		}
	}
	for _, r := range m.Rates {
		e.Rates[r.Key] = r
	}
	return nil
}
