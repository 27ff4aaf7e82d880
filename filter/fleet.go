// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"
	"unsafe"

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

// A lack is what a stream waits for, of what only the controller can give.
type lack struct {
	offer *offer
	meter int
	units int64
}

const (
	// shareHold is how long a call that would not wait is held all the same for what its Envoy has not been granted yet: one round
	// trip to the controller and back.
	shareHold = 250 * time.Millisecond

	tellWaiting = int64(100e6) // how often the member hears of those that wait
	keepOffers  = int64(10e9)  // for how long a bucket that nobody asks for is kept in mind
	maxOffers   = 4096
)

// offerOf is what is asked of a bucket; nil if a fleet does not share it.
func (v *VM) offerOf(now int64, s *policy.Step) *offer {
	if !s.Limit.Shared() {
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
func (s *Stream) offer(now int64, path *policy.Path, cost *policy.Cost, refused bool) {
	if s.offered || !s.plugin.policy.Shared {
		return
	}
	s.offered = true
	for i := range path.Len {
		o := s.vm.offerOf(now, &path.Steps[i])
		if o == nil {
			continue
		}
		o.calls, o.cost, o.changed = o.calls+cost.Requests, o.cost.Plus(*cost), true
		o.refused = o.refused || refused
		s.buckets[o.step.Tier] = o.step.Key
	}
}

// lacks keeps in mind what the last try of the waiter has met that only the controller can give, and says whether there is any.
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
func (s *Stream) noteAnswer(v feedback.Verdict) {
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
	if len(news) == 0 || !v.post(news) {
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

// In shared data offers lie as they are in memory: all who read them are of the same build.

// An offerHeader stands before the meters of one offer.
type offerHeader struct {
	layout  uint32
	meters  uint32
	vm      uint64
	key     policy.Key
	owner   policy.Key
	entry   policy.Key
	tier    policy.Tier
	space   policy.Space
	calls   int64
	cost    policy.Cost
	refused bool
}

const (
	offerLayout = 0x77660002 // changes with every change of the structs
	offerName   = "fo"
	maxNews     = 128 << 10
	newsTries   = 16

	headerBytes  = int(unsafe.Sizeof(offerHeader{}))
	offeredBytes = int(unsafe.Sizeof(offered{}))
)

func (o *offer) append(b []byte, vm uint64) []byte {
	s := &o.step
	h := offerHeader{
		layout: offerLayout, meters: uint32(len(o.meters)), vm: vm, tier: s.Tier, key: s.Key, owner: s.Owner, entry: s.Limit.Entry(), space: s.Space,
		calls: o.calls, cost: o.cost, refused: o.refused,
	}
	b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerBytes)...)
	for k := range o.meters {
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&o.meters[k])), offeredBytes)...)
	}
	return b
}

// post puts news where the member finds them; false if there is no room, or others were faster each time.
func (v *VM) post(news []byte) bool {
	for range newsTries {
		old, cas, ok := v.host.Get(offerName)
		if !ok {
			cas = policy.CreateCAS
		}
		if len(old)+len(news) > maxNews {
			return false
		}
		if v.host.Set(offerName, append(old, news...), cas) {
			return true
		}
	}
	return false
}

// collect takes all news there are.
func (v *VM) collect() []byte {
	for range newsTries {
		news, cas, ok := v.host.Get(offerName)
		if !ok || len(news) == 0 {
			return nil
		}
		if v.host.Set(offerName, nil, cas) {
			return news
		}
	}
	return nil
}

// nextOffer reads the first offer of news.
func nextOffer(news []byte) (h *offerHeader, meters []offered, rest []byte) {
	if len(news) < headerBytes {
		return nil, nil, nil
	}
	h = (*offerHeader)(unsafe.Pointer(unsafe.SliceData(news)))
	size := headerBytes + int(h.meters)*offeredBytes
	if h.layout != offerLayout || len(news) < size {
		return nil, nil, nil
	}
	if h.meters > 0 {
		meters = unsafe.Slice((*offered)(unsafe.Pointer(&news[headerBytes])), h.meters)
	}
	return h, meters, news[size:]
}
