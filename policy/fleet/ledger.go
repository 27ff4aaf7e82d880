// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
)

// A Ledger is the controller's side of one quota: what each node may be spending, and what is free. It is not safe for
// concurrent use. All times are ns of one monotonic clock of the controller, greater than 0.
type Ledger struct {
	key    string
	quota  Quota
	whole  Quota // before any cut
	params Params
	epoch  uint64

	peers []*peer // by name
	named map[string]*peer

	// Until these times only what nodes of this epoch brought may move: rates, and caps, which last a window longer.
	learnRates, learnCaps int64
	oldLeases             int64 // until then leases of an earlier controller may run

	// Until these times nodes that have not been heard of may keep floors that an earlier controller gave them.
	unheardRates, unheardCaps int64
	oldFloors                 int64 // until then a node may have a floor that this ledger did not give it
	seats, brought            int64 // nodes with a floor, and how many of them had one from an earlier controller

	pool     int64 // units of level that no node may hold
	poolRest int64 // of a unit, in window-ths
	inflow   int64 // units per window, since last
	last     int64 // time of the last rebalance
	pending  bool  // something has been reported since

	filler Filler
	wants  []Want
	x      []int64
	round  round
}

// NewLedger makes the ledger of a controller that starts now. Its epoch must be greater than that of each controller before
// it, and those must have stopped. first says that there was none: then nothing can be out, and the bucket is full. Otherwise it learns, for a
// lease, what nodes hold, and for a window longer what their rings remember.
func NewLedger(now int64, key string, q Quota, p Params, epoch uint64, first bool) *Ledger {
	l := &Ledger{key: key, quota: q, whole: q, params: p, epoch: epoch, named: map[string]*peer{}, last: now}
	if first {
		l.pool, l.inflow = q.Burst, q.Limit
	} else {
		l.learnRates = now + p.outlast(int64(p.Lease))
		l.oldLeases, l.learnCaps = l.learnRates, l.learnRates+l.memory()
		l.unheardRates = l.learnRates + p.outlast(int64(p.Forget))
		l.oldFloors = l.unheardRates
		l.unheardCaps = l.unheardRates + l.memory()
	}
	return l
}

// Seats are the nodes that have a floor. If they are stored before the grants of a rebalance are sent, the next controller can
// [Ledger.Resume] with them.
func (l *Ledger) Seats() (names []string) {
	for _, p := range l.peers {
		if p.seated {
			names = append(names, p.name)
		}
	}
	return names
}

// Resume tells a new ledger, before anything else, which nodes may have a floor of the controller before. Without it all
// floors that there may be are kept back, until those that are not heard of are forgotten. A seat counts with its whole floor
// even if its node never had that.
func (l *Ledger) Resume(seats []string) {
	for _, name := range seats {
		p := l.peer(name)
		p.seated, p.floor, p.floorEnd = true, l.quota.floor(), l.unheardRates
		l.seats++
	}
	l.unheardRates, l.unheardCaps = 0, 0
}

// EndLearning tells the ledger that each node that may hold anything of the quota under an earlier controller has said so to this one
// ([Report.All]), and each that may have spent of it lately.
func (l *Ledger) EndLearning(now int64) {
	l.learnRates, l.learnCaps = min(l.learnRates, now), min(l.learnCaps, now)
	l.pending = true
}

// memory is for how long after its end a grant may still be remembered, in ns of the controller's clock.
func (l *Ledger) memory() int64 {
	if !l.quota.windowed() {
		return 0
	}
	return l.params.outlast(l.quota.Memory)
}

// SetLimit changes the limit; the burst stays the same number of seconds. A cut only shrinks: nothing is granted to anybody
// until what is out has come down to it.
func (l *Ledger) SetLimit(now, limit int64) {
	l.fillPool(now)
	l.pool = min(l.pool, l.whole.burstOf(l.inflow))
	q := &l.quota
	l.inflow = max(l.inflow-max(q.Limit-limit, 0), 0)
	q.Burst, q.Limit = l.whole.burstOf(limit), limit
	l.pending = true
}

// Report takes in what a node says of the quota. It says false if the report is of an epoch before this controller's: then
// nothing of it is believed, and a [Hello] must be sent.
func (l *Ledger) Report(now int64, r *Report, h *Holding) (heard bool) {
	if r.Epoch != l.epoch {
		return r.Epoch > l.epoch
	}
	p := l.peer(r.Node)
	switch {
	case r.Incarnation < p.incarnation || r.Incarnation == p.incarnation && r.Number <= p.number:
		return true
	case r.Incarnation > p.incarnation:
		l.join(now, p, r, h)
	}
	p.number, p.seen, p.demand = r.Number, now, min(h.Demand, maxUnits)
	l.acknowledge(now, p, h)
	p.due = p.due || !r.AckOnly
	l.pending = true
	return true
}

// peer gives the entry of a node.
func (l *Ledger) peer(name string) *peer {
	if p := l.named[name]; p != nil {
		return p
	}
	p := &peer{name: name}
	l.named[name] = p
	at, _ := slices.BinarySearchFunc(l.peers, p, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	l.peers = slices.Insert(l.peers, at, p)
	return p
}

// join takes in a new life of a node. It holds what it says; what the life before held is gone, but what that one spent
// counts for a window more. In learning, what a node holds when it is first heard in this epoch is its credit.
func (l *Ledger) join(now int64, p *peer, r *Report, h *Holding) {
	held := max(h.Cap, h.Remembered)
	old := *p
	*p = peer{
		name: p.name, incarnation: r.Incarnation, ghosts: old.ghosts, rateCredit: old.rateCredit, capCredit: old.capCredit, seated: old.seated,
	}
	if old.incarnation != 0 || old.floor > 0 && h.Floor == 0 {
		p.haunt(now, l.memory(), &old, &l.whole)
	}
	end := max(l.oldLeases, now)
	p.version, p.acked = h.Version, h.Version // not 0 if the ledger has forgotten this life
	p.holds = append(p.holds, hold{version: h.Version, rate: h.Rate, cap: h.Cap, end: end})
	if now < l.oldFloors { // later, it is a report that has been very long on its way
		p.floor, p.floorEnd = h.Floor, l.oldFloors
	}
	p.target, p.returned = h.Rate, h.Returned
	if old.incarnation == 0 {
		p.rateCredit, p.capCredit = h.Rate, held
		l.seat(now, p, p.floor > 0)
	}
}

// seat gives a node one of the places with a floor, for as long as the ledger knows it: so no more floors are ever out than
// there are places. While floors of an earlier controller may be out, only those who bring one have a place.
func (l *Ledger) seat(now int64, p *peer, brought bool) {
	if p.seated || !brought && (now < l.unheardCaps || now < l.unheardRates || l.seats >= l.quota.Nodes) {
		return
	}
	p.seated = true
	l.seats++
	if brought {
		l.brought++
	}
}

// floorOf is the floor that a node has or will get.
func (l *Ledger) floorOf(p *peer) int64 {
	if p.seated {
		return l.quota.floor()
	}
	return 0
}

// unheard is what nodes that this controller has not heard of may keep as floors, or have spent under them.
func (l *Ledger) unheard() int64 { return max(l.quota.Nodes-l.brought, 0) * l.quota.floor() }

// acknowledge drops what a report proves dead: the grants older than the one it has applied. What the node still enforces
// under that one may have become less, and never becomes more.
func (l *Ledger) acknowledge(now int64, p *peer, h *Holding) {
	if l.quota.windowed() {
		p.wane(now, l.memory(), &l.whole)
	}
	covered, before := p.covered(now, h), p.rateBound(now)
	for len(p.holds) > 0 && p.holds[0].version < h.Version {
		p.holds = p.holds[1:]
	}
	since := int64(0)
	if len(p.holds) > 0 && p.holds[0].version == h.Version {
		since = p.holds[0].sent
		p.holds[0].rate = min(p.holds[0].rate, h.Rate)
		p.holds[0].cap = min(p.holds[0].cap, h.Cap)
	}
	p.acked, p.version = h.Version, max(p.version, h.Version)
	if l.quota.windowed() {
		p.trail.note(now, l.memory(), since, h)
	}
	if back := h.Returned - p.returned; back > 0 {
		p.returned = h.Returned
		if covered {
			fall := l.whole.burstOf(before) - l.whole.burstOf(p.rateBound(now))
			l.pool += max(min(back, fall), 0)
		}
	}
}

// Next is when Rebalance should be called again, in ns.
func (l *Ledger) Next() int64 {
	if l.pending {
		return l.last + int64(l.params.Rebalance)
	}
	return l.last + int64(l.params.Beat)
}
