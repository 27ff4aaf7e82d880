// SPDX-License-Identifier: Apache-2.0

package policy

// A counter counts what was used in one window that has a beginning and an end: a fixed one, or the life of a stock.
type counter struct {
	opened int64 // ns: when the window began
	closes int64 // ns: when the next one begins
	until  int64 // ns of the wall clock: the end of a fixed window
	guard  int64 // ns around that end in which a call counts in both windows
	used   int64 // units
	carry  int64 // units of used that count in the next window, too
}

// maxGuard is how far the clocks here and at a provider may differ (notes on day windows: 5 s); for short windows it is a
// sixtieth of them.
const maxGuard = int64(5e9)

// roll opens the next fixed window if it is time. wall is what the wall clock is ahead of now.
func (c *counter) roll(now, wall int64, m Meter) {
	guard := min(maxGuard, m.rate.window/subWindows)
	from, until := m.calendar.window(satAdd(now-guard, wall), m.rate.window)
	switch {
	case until > c.until:
		next := counter{until: until, opened: from + guard - wall}
		switch {
		case c.until == from:
			next.used = c.carry
		case c.until == 0, c.until > from: // the policy has windows begin elsewhere: what counts goes on counting
			next.used, next.opened = c.used, min(c.opened, next.opened)
		}
		*c = next
	case c.until-until > 2*m.rate.window: // the clock was wrong by a window or more, and is right now
		c.until = until
	}
	c.guard = guard
	c.closes = c.until + guard - wall
}

// expire empties a stock whose time is over.
func (c *counter) expire(now int64) {
	if c.closes > 0 && now >= c.closes {
		*c = counter{}
	}
}

// wait is the time in ns after which n units fit, if nobody else takes any; forever if n is above the limit.
func (c *counter) wait(now, n int64, r *rate) int64 {
	switch {
	case n > r.limit:
		return forever
	case c.used+n <= r.limit:
		return 0
	case c.carry+n > r.limit:
		return max(c.closes-now, 0) + r.window
	}
	return max(c.closes-now, 1)
}

// left is the time in ns until the window ends.
func (c *counter) left(now int64, r *rate) int64 {
	if c.closes == 0 {
		return r.window
	}
	return max(c.closes-now, 1)
}

// take counts n units at the time at.
func (c *counter) take(at, n int64, k WindowKind, r *rate) {
	if k == Stock && c.closes == 0 {
		c.opened, c.closes = at, satAdd(at, r.window)
	}
	c.add(at, n)
}

func (c *counter) add(at, n int64) {
	c.used = min(max(c.used+n, 0), forever/2)
	if c.guard > 0 && at >= c.closes-2*c.guard {
		c.carry = min(max(c.carry+n, 0), c.used)
	}
}

// settle makes a take of reserved units at the time at count as actual units. A refund of a window that is over is dropped, a
// charge counts now.
func (c *counter) settle(at, now, reserved, actual int64) {
	switch d := actual - reserved; {
	case d > 0 && now >= c.closes && c.guard > 0: // the next one has not been looked at yet
		c.add(now, d)
	case at >= c.opened-2*c.guard:
		c.add(at, d)
	case d > 0:
		c.add(now, d)
	}
}
