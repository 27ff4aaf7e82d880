// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// A pool is what a worker knows of one pool of a provider. What the provider's answers have made of it is in shared data, and from
// there in the gate of the pool's own record, which every request to it reads anyway.
type pool struct {
	name    string
	step    policy.Step
	rules   feedback.Rules
	off     bool // the provider's answers change nothing
	adapts  bool // it has a rate that may be cut
	active  bool // it is closed or cut, or was closed in vain: somebody has to look after it
	shut    bool // it is closed
	unset   bool // its record could not be reached
	learner feedback.Learner
	learned int64 // when
}

// A gateState is what all workers know of a pool, as it lies in shared data.
type gateState struct {
	layout uint64
	gate   feedback.Gate
	rate   feedback.Controller
	set    policy.Gate // what was put into the pool's record
	limits [8]knownLimit
}

func (st *gateState) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(st)), unsafe.Sizeof(*st))
}

// A knownLimit is one that the provider's headers have told.
type knownLimit struct {
	dimension feedback.Dimension
	limit     int64
}

const (
	gateLayout = 0x77670001 // changes with every change of the structs, and then the layout of records must, too
	gateTries  = 16

	// gateCount is the name of the number of changes to all pools: by it a worker hears, within a tick, that there was one.
	gateCount = "gate"
)

// makePools makes or renews the pools of a policy.
func (p *Plugin) makePools() {
	p.pools = map[*policy.Model]*pool{}
	for _, pr := range p.policy.Providers {
		for _, m := range pr.Pools() {
			k := m.Key()
			o := p.vm.pools[k]
			if o == nil {
				o = &pool{name: pr.Name + ", models " + m.Pattern}
				p.vm.pools[k] = o
			}
			o.step, o.rules, o.off = m.Pool(p.policy.Since), feedback.RulesOf(pr.Adapt), pr.Adapt.Off
			o.adapts, o.active = !o.off && m.Limit.Adapts(), true
			p.pools[m] = o
		}
	}
}

// gated finds the pool of the stream's model, and gives the model whose buckets it has to pass. A model without a limit has none,
// unless its pool is closed.
func (s *Stream) gated(m *policy.Model) *policy.Model {
	if m != nil {
		s.pool = s.plugin.pools[m]
		return m
	}
	if s.pool = s.plugin.pools[s.provider.Rest]; s.pool.shut {
		return s.provider.Rest
	}
	return nil
}

// meetGate is for what is tried again: a pool without a limit may have been closed since its path was made.
func (s *Stream) meetGate(path *policy.Path) {
	p := s.pool
	if p != nil && p.shut && !p.limited() && (path.Len == 0 || path.Steps[path.Len-1].Key != p.step.Key) {
		path.Add(p.step)
	}
}

// limited says whether requests to the pool read its record.
func (p *pool) limited() bool { return len(p.step.Limit.Meters) > 0 || p.step.Limit.InFlight > 0 }

func (p *pool) key() string {
	var b [10]byte
	b[0], b[1] = 'G', 's'
	*(*policy.Key)(unsafe.Pointer(&b[2])) = p.step.Key
	return string(b[:])
}

// change applies f to what is known of the pool, and does what follows from it. f may be called several times.
func (p *pool) change(v *VM, now int64, f func(*gateState)) {
	key := p.key()
	for range gateTries {
		was, cas := p.load(v, key, now)
		is := was
		f(&is)
		p.conclude(&is, now)
		p.shut = is.set.Until > now
		if string(is.bytes()) == string(was.bytes()) {
			return
		}
		if !v.host.Set(key, is.bytes(), cas) {
			continue
		}
		if is.set != was.set {
			p.active = true
			p.apply(v, now, is.set)
			p.tell(v, now, &was, &is)
		}
		return
	}
}

// load reads what is known of the pool.
func (p *pool) load(v *VM, key string, now int64) (st gateState, cas uint32) {
	b, cas, ok := v.host.Get(key)
	if !ok {
		cas = policy.CreateCAS
	}
	if ok && len(b) == int(unsafe.Sizeof(st)) {
		if st = *(*gateState)(unsafe.Pointer(unsafe.SliceData(b))); st.layout == gateLayout {
			st.rate.Follow(p.rules)
			return st, cas
		}
	}
	return gateState{layout: gateLayout, rate: *feedback.NewController(p.rules, policy.Whole, now)}, cas
}

// conclude says what the pool's record has to be told.
func (p *pool) conclude(st *gateState, now int64) {
	g := policy.Gate{Version: st.set.Version, Until: st.set.Until, Why: st.set.Why}
	if wait := st.gate.Wait(now); wait > 0 {
		g.Until, g.Why = now+wait, policy.ProviderCooling
		if st.gate.Class(now) == feedback.Exhausted {
			g.Why = policy.QuotaExhausted
		}
	}
	if p.off {
		g.Until = 0
	}
	if rate := st.rate.Rate(); rate < policy.Whole && p.adapts {
		g.Rate = rate
	}
	if g != st.set {
		g.Version++
		st.set = g
	}
}

// apply puts the gate into the pool's record, and lets the other workers know.
func (p *pool) apply(v *VM, now int64, g policy.Gate) {
	p.unset = !v.ledger.SetGate(now, &p.step, g)
	for range gateTries {
		b, cas, ok := v.host.Get(gateCount)
		if !ok || len(b) != 8 {
			b = make([]byte, 8)
			if !ok {
				cas = policy.CreateCAS
			}
		}
		*(*uint64)(unsafe.Pointer(unsafe.SliceData(b)))++
		if v.host.Set(gateCount, b, cas) {
			return
		}
	}
}

// tell logs what has changed. That a closed pool is closed for longer is no news.
func (p *pool) tell(v *VM, now int64, was, is *gateState) {
	s := ""
	if is.set.Until > now && was.set.Until <= now {
		s += " closed for " + time.Duration(is.set.Until-now).String() + " (" + is.set.Why.String() + ")"
	}
	if is.set.Rate != was.set.Rate {
		s += " rate " + strconv.FormatInt(int64(is.rate.Rate())*100/int64(policy.Whole), 10) + "% of the limit"
	}
	if s != "" {
		v.host.Log(Warn, "weir: provider "+p.name+":"+s)
	}
}

// refused takes what an answer means to a call that was admitted at the time at.
func (p *pool) refused(v *VM, now, at int64, verdict feedback.Verdict, final bool) {
	if p.off {
		return
	}
	p.change(v, now, func(st *gateState) {
		if now-st.gate.Until() > forgetMisses {
			st.gate.Succeeded(now)
		}
		st.gate.Close(now, verdict, 0)
		if final && p.adapts && verdict.Class == feedback.Congestion && verdict.Dimension.Quantity != feedback.InFlight && st.rate.Since(at) {
			st.rate.Step(now, feedback.Sample{Epoch: st.rate.Epoch(), Answered: 1, Rejected: 1})
		}
	})
}

// forgetMisses is after how long without trouble a quota that was found exhausted counts as one that is found so for the first
// time: the longest that a pool is closed without being told for how long.
const forgetMisses = int64(time.Hour)

// lookAfterGates hears of what other workers have changed.
func (v *VM) lookAfterGates(now int64) {
	if len(v.pools) == 0 {
		return
	}
	n := uint64(0)
	if b, _, ok := v.host.Get(gateCount); ok && len(b) == 8 {
		n = *(*uint64)(unsafe.Pointer(unsafe.SliceData(b)))
	}
	if n == v.gates {
		return
	}
	v.gates = n
	for _, p := range v.pools {
		if p.active = true; !p.limited() { // of the others their records say what there is to know
			st, _ := p.load(v, p.key(), now)
			p.shut = st.set.Until > now
		}
	}
}

// adaptGates lets the rates of pools that were cut climb again. It is called once a second.
func (v *VM) adaptGates(now int64) {
	for _, p := range v.pools {
		if !p.active {
			continue
		}
		if p.unset {
			st, _ := p.load(v, p.key(), now)
			p.apply(v, now, st.set)
		}
		p.active = false
		p.change(v, now, func(st *gateState) {
			if p.adapts && st.rate.Rate() < policy.Whole {
				p.active = true
				used := int64(v.ledger.InUse(now, &p.step))
				st.rate.Step(now, feedback.Sample{Epoch: st.rate.Epoch(), Sent: used, Could: int64(policy.Whole)})
			}
			p.active = p.active || st.gate.Wait(now) > 0
		})
	}
}

// mayWait says whether a refusal is one that is over some time.
func mayWait(r policy.Reason) bool {
	return r == policy.LimitExceeded || r == policy.QuotaExhausted || r == policy.ProviderCooling || r == policy.NoShare
}
