// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// What providers tell and teach goes into the member's reports as well: limits in their headers, and how far counts of their models'
// input are off.

const (
	modelsName = "fk" // keys of calibrations, as they lie in memory
	maxModels  = 64
	keyBytes   = int(unsafe.Sizeof(policy.Key(0)))

	lessonsEvery = int64(10e9)
)

// meetModel notes that something is learned of a model, so that the member finds it.
func (v *VM) meetModel(key policy.Key) {
	if v.models[key] || len(v.models) >= maxModels {
		return
	}
	v.models[key] = true
	v.update(modelsName, func(known []byte) ([]byte, bool) {
		list := keysIn(known)
		if len(list) >= maxModels || slices.Contains(list, key) {
			return nil, false
		}
		return append(known, unsafe.Slice((*byte)(unsafe.Pointer(&key)), keyBytes)...), true
	})
}

func keysIn(b []byte) []policy.Key {
	if len(b) < keyBytes {
		return nil
	}
	return unsafe.Slice((*policy.Key)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/keyBytes)
}

// lessons adds to a message, now and then, what has been learned.
func (m *member) lessons(now int64, msg *fleet.FromNode) {
	if now-m.taught < lessonsEvery {
		return
	}
	m.taught = now
	models, _, _ := m.vm.host.Get(modelsName)
	for _, key := range keysIn(models) {
		if c := m.vm.learner.Calibration(now, key); c.Weight > 0 {
			msg.Ratios = append(msg.Ratios, fleet.Ratio{Key: key, Weight: int64(c.Weight), Ratio: int64(c.Ratio*1e6 + 0.5), Spread: int64(c.Spread*1e6 + 0.5)})
		}
	}
	for name, q := range m.quotas {
		if p := m.vm.pools[q.key.step.Key]; p != nil && q.key.step.Tier == policy.TierProvider {
			m.learned(now, msg, name, q, p)
		}
	}
}

// learned adds the limit that the provider has told of a quota.
func (m *member) learned(now int64, msg *fleet.FromNode, name string, q *quota, p *pool) {
	st, _ := p.load(m.vm, p.key(), now)
	for i := range st.limits {
		told := st.limits[i].dimension
		if told.Window == 0 { // a provider that does not say it means a minute
			told.Window = int64(time.Minute)
		}
		d, ok := told.In()
		for k := range q.key.step.Limit.Meters {
			meter := &q.key.step.Limit.Meters[k]
			if ok && st.limits[i].limit > 0 && meter.ID() == q.meter && meter.Dimension == d && meter.Sub() == 0 {
				msg.Learned = append(msg.Learned, fleet.Learned{Key: name, Limit: st.limits[i].limit})
			}
		}
	}
}
