// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/policy"
)

// each has f look at the quota's meter; see [policy.Ledger.Shared].
func (q *quota) each(v *VM, now int64, f func(*policy.SharedMeter) bool) {
	if q.key == nil {
		return
	}
	for range recordTries {
		if v.ledger.Shared(now, &q.key.step, func(sm *policy.SharedMeter, overflow bool) bool {
			return sm.Meter.ID() == q.meter && overflow == q.overflow && f(sm)
		}) {
			return
		}
	}
	panic("no free moment at a bucket") // nothing has been said of it to anybody
}

// recordTries: what is granted must be in force before it is acknowledged.
const recordTries = 16

// A recordMeter is a meter in a bucket's record.
type recordMeter struct {
	vm    *VM
	quota *quota
}

// Put implements [fleet.Meter].
func (r recordMeter) Put(at int64, l policy.Lease, tokens int64) (returned int64) {
	r.quota.each(r.vm, r.vm.host.Now(), func(sm *policy.SharedMeter) bool {
		returned = sm.Put(at, l, tokens)
		return true
	})
	return returned
}

// Remembered implements [fleet.Meter].
func (r recordMeter) Remembered(now int64) (n int64) {
	r.quota.each(r.vm, now, func(sm *policy.SharedMeter) bool {
		n = sm.Remembered(now)
		return false
	})
	return n
}

// Spent implements [fleet.Meter].
func (r recordMeter) Spent() (n int64) {
	r.quota.each(r.vm, r.vm.host.Now(), func(sm *policy.SharedMeter) bool {
		n = sm.Spent()
		return false
	})
	return n
}
