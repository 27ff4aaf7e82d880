// SPDX-License-Identifier: Apache-2.0

package faults

// faults is the list. Where one survives, either the test is too weak or the line is not needed.
var faults = []fault{
	{"P1 a burst twice as large", "policy/rate.go", "satAdd(r.cost(burst),", "satAdd(r.cost(2*burst),", "TestBucketPromise"},
	{"P1 a ring that forgets its oldest slot", "policy/ring.go", "counts: 1 + subWindows + extra", "counts: subWindows + extra - 1", "TestWindowEdge"},
	{"P1 a charge that comes late is dropped", "policy/ring.go", "&& d > 0 {\n\t\tr.add(now, d, s)", "&& d > 0 {\n\t\tr.add(now, 0, s)", "TestOverrunIsWorkedOff"},
	{"P2 a wait that is too short", "policy/bucket.go", "max(after-r.tolerance-now, 0)", "max(after-r.tolerance-now, 0) / 2", "TestBucketWaitIsExact"},
	{"P2 admits what an exact bucket refuses", "policy/bucket.go", "max(after-r.tolerance-now, 0)", "max(after-r.tolerance-r.cost(1)-now, 0)", "TestBucketPromise"},
	{"P3 a refund that gives back what has refilled", "policy/bucket.go", "min(was-is, b.leastSince(at))", "(was - is)", "TestBucketPromise"},
	{"P3 refunds that are lost when many calls are open", "policy/bucket.go", "ratio < least {", "false && ratio < least {", "TestRefundsAreUsed"},
	{"P3 a reservation that can be settled twice", "policy/settle.go", "\tres.path.Len = 0\n", "", "TestSettleOnce"},
	{"P4 a change of the rate that mints", "policy/bucket.go", "min(b.level(now, from), to.burst)", "to.burst", "TestBucketConvertNeverMints"},
	{"P5 records created with version 0", "policy/store.go", "0xFFFFFFFE", "0", "TestCreationInEveryOrder"},
	{"P5 a key with two records", "policy/slots.go", "if p.name != to.name && !l.clearRival(s, to, p) {", "if false {", "TestCreationWhileASlotFrees"},
	{"P6 a refused request keeps what it took", "policy/ledger.go", "\t\t\tl.giveBack(now, res)\n", "", "TestLedgerUnderContention"},
	{"P7 a burst of one that never admits", "policy/rate.go", ", min(burst, roundingSlack))", ", 0)", "TestBucketEdges"},
	{"P8 a record from the future freezes", "policy/record.go", "if lead <= maxClockLead {", "if true {", "TestClockSteps"},
	{"P9 no guard around midnight", "policy/counter.go", "guard := min(maxGuard, m.rate.window/subWindows)", "guard := int64(0)", "TestFixedWindowPromise"},
	{"P9 a day that ignores the change of the clocks", "policy/calendar.go", "b := local - c.offset(a)", "b := a", "TestCalendar"},
	{"P22 calls in flight that are not let go", "policy/settle.go", "res.spill[i], -res.Cost.Requests)", "res.spill[i], 0)", "TestLedgerPromises"},
	{"P22 leases that do not end", "policy/record.go", "if h.vm != vm && h.expires > now {", "if h.vm != vm {", "TestInFlightLease"},
	{"P23 busy records are taken over", "policy/slots.go", "return r.idle(max(now, r.clock))", "return true", "TestMoreKeysThanSlots"},
	{"a request under an old policy wipes new dimensions", "policy/record.go", "&& n < maxMeters-len(l.Meters) {", "&& n < 0 {", "TestOldPolicyKeepsNewDimension"},
	{"who leaves the overflow record starts anew", "policy/slots.go", "if s.Space.Slots == 0 || to.spill {", "if true {", "TestOverflowIsTakenAlong"},
	{"invented tenants share slots with known ones", "policy/slots.go", "\tif s.Vouched {", "\tif false {", "TestInventedTenantsStarveNobody"},
	{"a name that a policy forgets and knows again", "policy/slots.go", "case to.clock < s.Since && s.Space.Slots > 0 && !to.spill:", "case false:", "TestNamesComeAndGo"},
	{"a day that begins elsewhere and anew", "policy/counter.go", "case c.until == 0, c.until > from:", "case false:", "TestDaysBeginElsewhere"},
	{"a batch of calls that outlives its time", "policy/ample.go", "now < s.expires && ", "", "TestBatchExpires"},
	{"a tree's budget that never comes back", "policy/counter.go", "if c.closes > 0 && now >= c.closes {", "if false {", "TestTree"},
	{"a fan-out told that one more fits", "policy/fanout.go", "\treturn low\n", "\treturn low + 1\n", "TestFanout"},
	{"a fan-out that never ends", "policy/fanout.go", "if now < o.expires && f.left.Requests > 0 {", "if f.left.Requests > 0 {", "TestFanoutOverWorkers"},
	{"a branch that takes nothing from its fan-out", "policy/fanout.go", "\t\tf.left = f.left.Minus(cost)\n", "", "TestFanoutOverWorkers"},
	{"money rounded down", "policy/rating.go", "min(nano%1000, 1)", "0", "TestRating"},
}
