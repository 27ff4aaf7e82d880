// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/weirproxy/weir/policy"
)

// Pools splits what one limit refills between classes, and lends what a class does not use. It stands beside the limit's own
// bucket and never instead of it: what it admits must pass the bucket as well.
//
// Each class has a bucket of its own: its share of the rate, and of half the burst. The other half of the burst is the pot.
// What a class's bucket cannot hold because it is full, for nobody uses it, runs over into the pot, and from there any class
// may borrow. So only what would be lost is lent, nothing ever has to be taken back, and a class that wakes up has the whole
// of its own burst and its whole rate at once: the period in which its share comes back is 0.
//
// Promises, each a test, for limit R in its window, burst B, and classes with rate r and burst b of their own:
//
//   - all classes together never get more than B + R x time, in any interval (plus debt, see below);
//   - a class that wants n, with ahead units of its own class before it, waits at most (ahead + n + its debt) / r, whatever
//     all others do: this is the bound on starvation;
//   - a class is never refused while its own bucket and what it may borrow of the pot hold n; it borrows only while the pot
//     keeps the class's threshold;
//   - while any class wants more, no share of an idle class is lost, unless that class keeps it to itself.
//
// A class without a share has no bucket of its own: it lives from the pot, and waits for as long as others leave nothing there.
//
// A request above its class's burst is admitted as the bucket itself does: by what there is, or when its class's own bucket
// is full, which then owes the rest; the class pays it back from its own rate. For a class without a share that bucket is the pot.
type Pools struct {
	limit   int64 // units in a window
	window  int64 // in ticks
	tick    int64 // ns
	pot     int64 // most that it holds, as all levels in units x window
	direct  int64 // what no class has a share of runs into the pot, units in a window
	classes []poolClass
}

type poolClass struct {
	rate, burst int64 // units in a window; units x window
	floor       int64 // what it must leave in the pot, units x window
	keep, apart bool
}

// A Pool is one class's part.
type Pool struct {
	Share     policy.Share // of the rate, and of the half of the burst that is split
	Keep      bool         // its share is not lent (borrow: false)
	Apart     bool         // it borrows nothing
	Threshold policy.Share // of the pot, which it leaves to others when it borrows; 0 for the highest class
}

// maxLevel bounds limit x window in ticks, so that no sum of a few levels leaves int64.
const maxLevel = 1 << 58

// NewPools splits a meter of a limit. Shares add up to 100 % at most; each class that has one must get one unit at least.
func NewPools(m policy.Meter, pools []Pool) (*Pools, error) {
	if len(pools) < 1 || len(pools) > MaxClasses {
		return nil, fmt.Errorf("queue: %d classes are not between 1 and %d", len(pools), MaxClasses)
	}
	p := &Pools{limit: m.Limit(), direct: m.Limit(), pot: m.Burst()}
	for p.tick = int64(time.Microsecond); ; p.tick *= 1000 {
		if p.window = int64(m.Window()) / p.tick; p.window == 0 {
			return nil, errors.New("queue: the limit is too large to be split")
		}
		if hi, lo := bits.Mul64(uint64(p.limit), uint64(p.window)); hi == 0 && lo <= maxLevel && int64(m.Window())%p.tick == 0 {
			break
		}
	}
	var shares policy.Share
	for i, pool := range pools {
		c := poolClass{rate: part(m.Limit(), pool.Share), burst: max(part(m.Burst(), pool.Share)/2, 1), keep: pool.Keep, apart: pool.Apart}
		if pool.Share == 0 {
			c.burst = 0
		}
		p.direct -= c.rate
		p.pot -= c.burst
		shares += max(pool.Share, 0)
		if c.rate < 1 && (pool.Share != 0 || c.apart) || p.pot < 0 || shares > policy.Whole || pool.Threshold < 0 || pool.Threshold > policy.Whole {
			return nil, fmt.Errorf("queue: class %d: shares of 1 unit at least, and 100 %% together at most", i)
		}
		c.burst *= p.window
		p.classes = append(p.classes, c)
	}
	p.pot *= p.window
	for i := range p.classes {
		p.classes[i].floor = part(p.pot, pools[i].Threshold)
	}
	return p, nil
}

// part is a share of n, rounded down.
func part(n int64, s policy.Share) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(max(s, 0)))
	q, _ := bits.Div64(hi, lo, uint64(policy.Whole))
	return int64(q)
}

// Rate is what a class gets whatever the others do, in units in a window of the limit.
func (p *Pools) Rate(class int) int64 { return p.classes[class].rate }

// Burst is what a class may take at once whatever the others do, after it has been idle, in units.
func (p *Pools) Burst(class int) int64 { return p.classes[class].burst / p.window }
