// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
)

// Parts are the pools of all meters of a limit that are split, in one value of a store that workers share: one
// compare-and-swap takes all of them or none. The levels survive a change of the limit; a class that is then above its new
// burst has only that. Other classes, or other meters, begin anew, which the limit's own buckets never do.
type Parts struct {
	store  policy.Store
	name   string
	print  uint64 // tells other classes and meters apart
	meters []partMeter
}

type partMeter struct {
	*Pools
	meter policy.Meter
}

// A class is one class's access to the parts.
type class struct {
	*Parts
	at int
}

// partsState is the value: this, and a PoolState for each meter.
type partsState struct{ print uint64 }

const (
	partsHeader = int(unsafe.Sizeof(partsState{}))
	stateSize   = int(unsafe.Sizeof(PoolState{}))

	partTries   = 16
	settleTries = 64 // giving up loses a refund until the pools have refilled
)

// NewParts splits those meters of a limit that can be split, and gives each class's part; nil if there is none.
func NewParts(store policy.Store, name string, limit *policy.Limit, classes []policy.Class) (parts []policy.Part) {
	p := &Parts{store: store, name: name, print: 0xcbf29ce484222325}
	var shares []policy.Share
	var pools []Pool
	for _, c := range classes {
		shares = append(shares, c.Share)
		pools = append(pools, Pool{Share: c.Share, Keep: c.Keep})
		for i := range len(c.Name) {
			p.mix(uint64(c.Name[i]))
		}
		p.mix(0)
	}
	for _, m := range limit.Meters {
		if !m.Splits(shares) {
			continue
		}
		if s, err := NewPools(m, pools); err == nil {
			p.meters = append(p.meters, partMeter{s, m})
			p.mix(uint64(m.Dimension))
			p.mix(uint64(s.window))
			p.mix(uint64(s.tick))
		}
	}
	for i := range classes {
		if len(p.meters) > 0 {
			parts = append(parts, &class{p, i})
		}
	}
	return parts
}

// mix adds to the print (FNV-1a).
func (p *Parts) mix(v uint64) { p.print = (p.print ^ v) * 0x100000001b3 }

// read gives the states of all meters, full ones if there are none yet, and the value that they lie in.
func (p *Parts) read(now int64) (states []PoolState, value []byte, cas uint32) {
	value, cas, ok := p.store.Get(p.name)
	if !ok {
		cas = policy.CreateCAS
	}
	size := partsHeader + len(p.meters)*stateSize
	fresh := len(value) != size || (*partsState)(unsafe.Pointer(unsafe.SliceData(value))).print != p.print
	if fresh {
		value = make([]byte, size)
		(*partsState)(unsafe.Pointer(unsafe.SliceData(value))).print = p.print
	}
	states = unsafe.Slice((*PoolState)(unsafe.Pointer(&value[partsHeader])), len(p.meters))
	for i := range states {
		if fresh {
			states[i] = p.meters[i].Full(now)
		}
	}
	return states, value, cas
}

// Refuse says which meter's part has not enough for the longest.
func (c *class) Refuse(now int64, cost policy.Cost) (r policy.Refusal) {
	states, _, _ := c.read(now)
	for i, m := range c.meters {
		n := cost.In(m.meter.Dimension.Unit())
		wait := time.Duration(min(m.Wait(states[i], now, c.at, n), int64(m.meter.Window())))
		if n > 0 && wait > 0 && (r.Reason == policy.None || wait > r.Wait) {
			r = policy.Refusal{
				Reason: policy.LimitExceeded, Tier: policy.TierProvider, Dimension: m.meter.Dimension,
				Limit: max(m.Rate(c.at), 1), Burst: max(m.Burst(c.at), 1), Need: n, Window: m.meter.Window(),
				Remaining: m.Level(states[i], now, c.at), Wait: wait,
			}
		}
	}
	return r
}

// Take takes the cost from the class's part of all meters, or from none.
func (c *class) Take(now int64, cost policy.Cost) bool {
	for range partTries {
		states, value, cas := c.read(now)
		for i, m := range c.meters {
			if n := cost.In(m.meter.Dimension.Unit()); n > 0 && !m.Take(&states[i], now, c.at, n) {
				return false
			}
		}
		if c.store.Set(c.name, value, cas) {
			return true
		}
	}
	return false
}

// Settle makes a take count as what was used.
func (c *class) Settle(now int64, was, actual policy.Cost) {
	if was == actual {
		return
	}
	for range settleTries {
		states, value, cas := c.read(now)
		for i, m := range c.meters {
			u := m.meter.Dimension.Unit()
			m.Settle(&states[i], now, c.at, was.In(u), actual.In(u))
		}
		if c.store.Set(c.name, value, cas) {
			return
		}
	}
}
