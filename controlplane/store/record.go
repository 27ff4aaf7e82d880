// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A record is a bucket as a file has it: all meters of one key, and its calls in flight.
type record struct {
	Clock  int64
	Meters []meterState
	Open   []openCall `json:",omitempty"`
}

type openCall struct {
	ID    string
	Until int64
}

// A call is a take that was admitted, or one that was settled before it came.
type call struct {
	Until   int64
	Settled bool
	Items   []callItem `json:",omitempty"`
}

type callItem struct {
	Bucket string
	At     int64
	Meters []taken
}

// A taken is what a call holds on a meter.
type taken struct {
	ID   int64
	Unit policy.Unit
	N    int64
}

// remember is how long a call is known after its lease, so that one that comes twice is taken once.
const remember = 5 * time.Minute

// fit brings the record in line with an item at the time now.
func (r *record) fit(now int64, item *Item) {
	r.Open = slices.DeleteFunc(r.Open, func(o openCall) bool { return o.Until <= now })
	r.Meters = slices.DeleteFunc(r.Meters, func(s meterState) bool {
		known := slices.ContainsFunc(item.Meters, func(m Meter) bool { return m.ID == s.ID })
		return !known && max(s.At, s.Until)+4*s.Window < now
	})
	for i := range item.Meters {
		m := &item.Meters[i]
		if r.meter(m.ID) == nil {
			r.Meters = append(r.Meters, newState(now, m))
		}
		r.meter(m.ID).fit(now, m)
	}
}

func (r *record) meter(id int64) *meterState {
	for i := range r.Meters {
		if r.Meters[i].ID == id {
			return &r.Meters[i]
		}
	}
	return nil
}

// tick is the time of a take: now, but later than any before.
func (r *record) tick(now int64) int64 {
	if r.Clock <= now+maxLead {
		now = max(now, r.Clock+1)
	}
	r.Clock = now
	return now
}

// judge asks whether all items admit the take. The records must have been fitted.
func (t *Take) judge(now int64, records []*record) (a Answer) {
	a.Verdict = Admitted
	for i := range t.Items {
		item, r := &t.Items[i], records[i]
		at := now
		if r.Clock <= now+maxLead {
			at = max(now, r.Clock)
		}
		for k := range item.Meters {
			s := r.meter(item.Meters[k].ID)
			if w := s.wait(at, t.need(&item.Meters[k])); w != 0 {
				if w != forever {
					w += at - now // the record's clock is ahead of the caller's
				}
				a.refuse(item.Shadow, Refusal{true, i, k, micro(w), s.remaining(at)})
			}
		}
		if free := item.InFlight - int64(len(r.Open)); item.InFlight > 0 && free < 1 {
			a.refuse(item.Shadow, Refusal{true, i, -1, time.Second, free})
		}
	}
	return a
}

func micro(w int64) time.Duration {
	if w == forever {
		return TooLarge
	}
	return time.Duration(w) * time.Microsecond
}

func (a *Answer) refuse(shadow bool, r Refusal) {
	to := &a.Shadow
	if !shadow {
		a.Verdict, to = Denied, &a.Denied
	}
	if !to.Refused || to.Wait != TooLarge && (r.Wait == TooLarge || r.Wait > to.Wait) {
		*to = r
	}
}

// hold takes the cost from all records, and gives what is to be known of the call.
func (t *Take) hold(now int64, records []*record) *call {
	c := &call{Until: now + t.Lease.Microseconds()}
	for i := range t.Items {
		item, r := &t.Items[i], records[i]
		at := r.tick(now)
		held := callItem{Bucket: item.Bucket, At: at}
		for k := range item.Meters {
			m := &item.Meters[k]
			r.meter(m.ID).take(at, t.need(m))
			held.Meters = append(held.Meters, taken{m.ID, m.Unit, t.need(m)})
		}
		if item.InFlight > 0 {
			r.Open = append(r.Open, openCall{t.ID, c.Until})
		}
		c.Items = append(c.Items, held)
	}
	return c
}

// settle makes what a call holds on a record count as what it cost.
func (r *record) settle(now int64, id string, held *callItem, actual policy.Cost) {
	r.Open = slices.DeleteFunc(r.Open, func(o openCall) bool { return o.ID == id })
	if r.Clock <= now+maxLead {
		now = max(now, r.Clock)
	}
	for _, t := range held.Meters {
		if s := r.meter(t.ID); s != nil {
			s.settle(held.At, now, t.N, actual.In(t.Unit))
		}
	}
}
