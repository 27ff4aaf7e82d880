// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/weirproxy/weir/policy"

// How each part of a message is written and read. New fields go to the end.

func (h *Holding) write(w *writer) {
	w.text(h.Key)
	w.uint(h.Version)
	w.ints(h.Demand, h.Rate, h.Cap, h.Remembered, h.Spent, h.Floor, h.Returned)
	w.end(partHolding)
}

func readHolding(p *reader) Holding {
	return Holding{
		Key: p.text(), Version: p.uint(), Demand: p.int(), Rate: p.int(), Cap: p.int(), Remembered: p.int(), Spent: p.int(),
		Floor: p.int(), Returned: p.int(),
	}
}

func (a *Asks) write(w *writer) {
	w.text(a.Key)
	w.uint(uint64(len(a.Asks)))
	for _, k := range a.Asks {
		w.uint(k.ID)
		w.ints(k.Units, k.Patience)
	}
	w.uint(uint64(len(a.Done)))
	for _, d := range a.Done {
		w.uint(d.ID)
		w.flag(d.Returned)
	}
	w.end(partAsks)
}

func readAsks(p *reader) Asks {
	a := Asks{Key: p.text()}
	for range p.count() {
		a.Asks = append(a.Asks, Ask{p.uint(), p.int(), p.int()})
	}
	for range p.count() {
		a.Done = append(a.Done, Done{p.uint(), p.flag()})
	}
	return a
}

// count reads how many items follow; there are not more of them than bytes.
func (r *reader) count() uint64 {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return n
}

func (d *Draw) write(w *writer) {
	w.text(d.Key)
	w.uint(d.Number)
	w.ints(d.Demand, d.Given, d.Used, d.Returned, d.Want)
	w.end(partDraw)
}

func readDraw(p *reader) Draw {
	return Draw{Key: p.text(), Number: p.uint(), Demand: p.int(), Given: p.int(), Used: p.int(), Returned: p.int(), Want: p.int()}
}

func (s *Seen) write(w *writer) {
	w.text(s.Key)
	w.uint(uint64(s.Epoch))
	w.ints(s.Denied, s.Queued, s.Sent, s.Answered, s.Rejected)
	w.uint(uint64(len(s.Others)))
	for _, o := range s.Others {
		w.uint(uint64(o.Class))
		w.int(o.Calls)
	}
	if s.Whole {
		w.flag(true)
		w.int(s.Used)
	}
	w.end(partSeen)
}

func readSeen(p *reader) Seen {
	s := Seen{
		Key: p.text(), Epoch: uint32(p.uint()), Denied: p.int(), Queued: p.int(), Sent: p.int(), Answered: p.int(), Rejected: p.int(),
	}
	for range p.count() {
		s.Others = append(s.Others, Refused{uint8(p.uint()), p.int()})
	}
	if s.Whole = p.flag(); s.Whole {
		s.Used = p.int()
	}
	return s
}

func (d *Denial) write(w *writer) {
	w.uint(uint64(d.Tier))
	w.uint(uint64(d.Dimension))
	w.uint(uint64(d.Reason))
	w.uint(uint64(d.Verdict))
	w.flag(d.Shadow)
	w.uint(uint64(d.Key))
	w.uint(uint64(d.Tenant))
	w.text(d.Class)
	w.ints(d.Limit, d.Calls)
	w.end(partDenial)
}

func readDenial(p *reader) Denial {
	return Denial{
		Tier: policy.Tier(p.uint()), Dimension: policy.Dimension(p.uint()), Reason: policy.Reason(p.uint()), Verdict: policy.Verdict(p.uint()),
		Shadow: p.flag(), Key: policy.Key(p.uint()), Tenant: policy.Key(p.uint()), Class: p.text(), Limit: p.int(), Calls: p.int(),
	}
}

func (g *Grant) write(w *writer) {
	w.text(g.Key)
	w.uint(g.Version)
	w.uint(g.Number)
	w.ints(g.Lease, g.Forget, g.Rate, g.Burst, g.Cap, g.Floor, g.Tokens)
	w.flag(g.Ack)
	w.flag(g.Tight)
	w.end(partGrant)
}

func readGrant(p *reader) Grant {
	return Grant{
		Key: p.text(), Version: p.uint(), Number: p.uint(), Lease: p.int(), Forget: p.int(), Rate: p.int(), Burst: p.int(),
		Cap: p.int(), Floor: p.int(), Tokens: p.int(), Ack: p.flag(), Tight: p.flag(),
	}
}

func (l *Lent) write(w *writer) {
	w.text(l.Key)
	w.int(l.Term)
	w.uint(uint64(len(l.IDs)))
	for _, id := range l.IDs {
		w.uint(id)
	}
	w.end(partLent)
}

func readLent(p *reader) Lent {
	l := Lent{Key: p.text(), Term: p.int()}
	for range p.count() {
		l.IDs = append(l.IDs, p.uint())
	}
	return l
}

func (c *Chunk) write(w *writer) {
	w.text(c.Key)
	w.uint(c.Number)
	w.ints(c.Given, c.Term)
	w.end(partChunk)
}

func readChunk(p *reader) Chunk {
	return Chunk{Key: p.text(), Number: p.uint(), Given: p.int(), Term: p.int()}
}
