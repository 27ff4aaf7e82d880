// SPDX-License-Identifier: Apache-2.0

package feedback

import "github.com/weirproxy/weir/policy"

// The second rule set of mission C5, for providers that reject some calls whatever the rate (shared capacity): the rate
// follows the share of rejections, and one more or less means nothing.
const (
	tooMany     = 50_000     // more of them in cutWindow: the rate is cut
	cutBy       = 100_000    // of the rate
	cutWindow   = minute     // ns
	few         = 10_000     // less of them in raiseWindow: it is raised
	raiseBy     = 50_000     // of the ceiling
	raiseWindow = 5 * minute // ns
)

// A shareLedger counts answers by slots of 10 s, in a ring of five minutes.
type shareLedger struct {
	head  int64 // number of the running slot
	slots [raiseWindow / slotWidth]struct{ answered, rejected int64 }
	begun bool
}

const slotWidth = 10 * second

func (l *shareLedger) add(now int64, s Sample) {
	to := now / slotWidth
	n := int64(len(l.slots))
	if !l.begun {
		l.head, l.begun = to, true
	}
	for l.head = max(l.head, to-n); l.head < to; {
		l.head++
		l.slots[uint64(l.head)%uint64(n)] = struct{ answered, rejected int64 }{}
	}
	slot := &l.slots[uint64(l.head)%uint64(n)]
	slot.answered, slot.rejected = slot.answered+s.Answered, slot.rejected+s.Rejected
}

// over counts the slots of the last window ns, the running one included.
func (l *shareLedger) over(window int64) (answered, rejected int64) {
	n := int64(len(l.slots))
	for i := range min(window/slotWidth, n) {
		slot := &l.slots[uint64(l.head-i)%uint64(n)]
		answered, rejected = answered+slot.answered, rejected+slot.rejected
	}
	return answered, rejected
}

// minAnswers is how many answers a share is worth something of: of 20, two rejections are above tooMany.
const minAnswers = 20

// byShare is Step by the second rule set. Each change begins a new count, so that no answer counts twice; a cut begins an
// epoch too.
func (c *Controller) byShare(now int64, s Sample) (Change, bool) {
	c.ledger.add(now, s)
	if answered, rejected := c.ledger.over(cutWindow); answered >= minAnswers && isMore(rejected, answered, tooMany) {
		if now-c.cutAt < c.rules.Cooldown {
			return Change{}, false
		}
		c.ledger = shareLedger{}
		return c.cut(now, c.rate*(policy.Whole-cutBy)/policy.Whole, TooManyRejects)
	}
	if now-c.since < raiseWindow {
		return Change{}, false
	}
	answered, rejected := c.ledger.over(raiseWindow)
	if answered < minAnswers || !isMore(answered-rejected, answered, policy.Whole-few) {
		return Change{}, false
	}
	if !c.busy() {
		c.rest(now)
		return Change{}, false
	}
	c.ledger = shareLedger{}
	return c.set(now, c.rate+raiseBy*c.rules.Ceiling/policy.Whole, FewRejects)
}

// isMore says whether part is more than a share of all.
func isMore(part, all int64, share policy.Share) bool {
	return float64(part)*float64(policy.Whole) > float64(all)*float64(share)
}
