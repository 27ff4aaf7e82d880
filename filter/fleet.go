// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// Where limits are shared by a fleet, this Envoy has only what its controller grants. One worker, the member, talks to that; all tell
// it what callers have asked for, through shared data: see member.go.

// A bucketKey names a bucket.
type bucketKey struct {
	tier policy.Tier
	key  policy.Key
}

// An offer is what this worker's callers have asked of a bucket since the member was told.
type offer struct {
	step    policy.Step
	calls   int64
	cost    policy.Cost
	refused bool
	meters  []offered // of its limit
	changed bool
	print   int64 // of who waits
	told    int64 // when
	used    int64 // when
}

// offered is what has happened at one meter.
type offered struct {
	waiting  int64 // calls that wait for units that only the controller can give
	want     int64 // the most units that one of them needs
	denied   int64 // calls
	answered int64 // by the provider
	rejected int64 // of them, for this limit
	sent     int64 // units

	others [feedback.NumClasses]int64 // refusals of other kinds, of the first meter
}

// add counts what has happened since; who waits is no sum.
func (o *offered) add(n *offered) {
	o.denied, o.answered, o.rejected, o.sent = o.denied+n.denied, o.answered+n.answered, o.rejected+n.rejected, o.sent+n.sent
	for class := range o.others {
		o.others[class] += n.others[class]
	}
}

// A lack is what a stream waits for, of what only the controller can give.
type lack struct {
	offer *offer
	meter int
	units int64
}

const (
	// shareHold is how long a call that would not wait is held all the same for what its Envoy has not been granted yet: until
	// the next message to the controller (see postRate), and for its answer.
	shareHold = 600 * time.Millisecond

	tellWaiting = int64(100e6) // how often the member hears of those that wait
	keepOffers  = int64(10e9)  // for how long a bucket that nobody asks for is kept in mind
	maxOffers   = 4096
)

// offerOf is what is asked of a bucket; nil if no control plane is told.
func (v *VM) offerOf(now int64, s *policy.Step) *offer {
	if !s.Limit.Shared() && s.Limit.Entry() == 0 {
		return nil
	}
	k := bucketKey{s.Tier, s.Key}
	o := v.offers[k]
	if o == nil {
		if len(v.offers) >= maxOffers {
			return nil
		}
		o = &offer{}
		v.offers[k] = o
	}
	if o.used = now; o.step.Limit != s.Limit {
		o.step, o.meters = *s, make([]offered, len(s.Limit.Meters))
	}
	return o
}

// offer counts once that the stream asked for a cost, and whether it was refused at first.
func (s *Stream) offer(path *policy.Path, cost *policy.Cost, refused bool) {
	if s.offered || !s.plugin.policy.Reports {
		return
	}
	s.offered = true
	now := s.vm.host.Now()
	for i := range path.Len {
		o := s.vm.offerOf(now, &path.Steps[i])
		if o == nil {
			continue
		}
		o.calls, o.cost, o.changed = o.calls+cost.Requests, o.cost.Plus(*cost), true
		o.refused = o.refused || refused
	}
}

// lack keeps in mind what the last try of the waiter has met that only the controller can give, and says whether there is any.
func (w *waiter) lack(now int64, v *VM) bool {
	w.lacks = w.lacks[:0]
	lacks := v.ledger.Lacks()
	for i := range lacks {
		o := v.offerOf(now, &lacks[i].Step)
		for k := 0; o != nil && k < len(o.meters); k++ {
			if o.step.Limit.Meters[k].ID() == lacks[i].Meter {
				w.lacks = append(w.lacks, lack{o, k, lacks[i].Units})
			}
		}
	}
	return len(w.lacks) > 0
}

// noteDenied counts a refusal at the limit that refused.
func (s *Stream) noteDenied(r *policy.Refusal) {
	if !s.offered {
		return
	}
	o := s.vm.offers[bucketKey{r.Tier, s.buckets[r.Tier]}]
	for k := 0; o != nil && k < len(o.meters); k++ {
		if m := &o.step.Limit.Meters[k]; m.Dimension == r.Dimension && m.Sub() == 0 {
			o.meters[k].denied++
			o.changed = true
		}
	}
}

// noteAnswer counts what a provider made of a call under the rate that is still in force, for its limits.
func (s *Stream) noteAnswer() {
	defer s.vm.guard("note_answer") // the call is settled in any case
	v := &s.heard
	if !s.offered || s.pool == nil || s.rates != s.vm.rates {
		return
	}
	o := s.vm.offers[bucketKey{policy.TierProvider, s.pool.step.Key}]
	if o == nil || len(o.meters) == 0 {
		return
	}
	o.changed = true
	if s.status >= 400 && v.Class != feedback.Congestion {
		o.meters[0].others[v.Class]++
		return
	}
	for k := range o.meters {
		m, unit := &o.meters[k], o.step.Limit.Meters[k].Dimension.Unit()
		m.answered++
		m.sent += s.reservation.Cost.In(unit)
		if v.Class == feedback.Congestion && v.Dimension.Concerns(unit) {
			m.rejected++
		}
	}
}

// tellOffers tells the member what was asked for since it was told last.
func (v *VM) tellOffers(now int64) {
	if len(v.offers) == 0 {
		return
	}
	v.countLacks()
	var news []byte
	for k, o := range v.offers {
		switch {
		case o.changed || o.waits() && now-o.told >= tellWaiting:
			news = o.append(news, v.id)
		case !o.waits() && now-o.used > keepOffers:
			delete(v.offers, k)
		}
	}
	if len(news) == 0 || !v.post(offerName, news) {
		return
	}
	for _, o := range v.offers {
		if o.changed || o.waits() && now-o.told >= tellWaiting {
			o.clear(now)
		}
	}
	v.eager = now + eagerFor
}

// countLacks counts who waits for what.
func (v *VM) countLacks() {
	for _, o := range v.offers {
		for k := range o.meters {
			o.meters[k].waiting, o.meters[k].want = 0, 0
		}
	}
	for _, w := range v.waiters {
		for _, l := range w.lacks {
			m := &l.offer.meters[l.meter]
			m.waiting, m.want = m.waiting+1, max(m.want, l.units)
		}
	}
	for _, o := range v.offers {
		print := int64(0)
		for k := range o.meters {
			print = print*31 + o.meters[k].waiting*7 + o.meters[k].want
		}
		o.changed, o.print = o.changed || print != o.print, print
	}
}

func (o *offer) waits() bool {
	for k := range o.meters {
		if o.meters[k].waiting > 0 {
			return true
		}
	}
	return false
}

// clear forgets what was told; who waits goes on waiting.
func (o *offer) clear(now int64) {
	o.calls, o.cost, o.refused, o.changed, o.told = 0, policy.Cost{}, false, false, now
	for k := range o.meters {
		o.meters[k] = offered{waiting: o.meters[k].waiting, want: o.meters[k].want}
	}
}
