// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/queue"
)

// The reference experiments have one server and one client. Both limit with the production's ledger, and the client's calls
// wait in the production's queue.
const (
	serverRate  = 5                      // calls a second
	serverBurst = 5                      // calls
	callTakes   = 120 * time.Millisecond // of an accepted call; a rejected one is answered at once
	clientBurst = 2                      // calls

	// firstDelay is what a rejected call waits before its first retry, doubled each time.
	firstDelay = 500 * time.Millisecond

	// tick is how finely a waiting client wakes: Envoy's timers have whole milliseconds. Without it a client would wake the
	// nanosecond or two early that a bucket allows for its rounding, before calls that arrive at the round time.
	tick = int64(time.Millisecond)
)

// Classes of calls.
const (
	critical = iota
	normal
)

// A client is how the calls of an experiment are held back.
type client struct {
	rate     int64 // calls a second, in bursts of clientBurst; 0: no bucket
	inFlight int64 // calls; 0: any number
	retry    bool
	queue    queue.Config // what it orders by
}

// An agentCall is one call.
type agentCall struct {
	class         int
	arrived, done int64 // ns; done is 0 until it is
	attempts      int
	held          policy.Reservation // on the client's own limit
}

// agents are one run.
type agents struct {
	clock  Clock
	client client
	jitter Jitter
	rand   *rand.Rand
	queue  *queue.Queue
	own    *limiter
	server *limiter
	calls  []agentCall

	turnDue                     bool
	rejections, retries, failed int
	finished                    []Point // calls done over time
}

func newAgents(c client, o Options, actor string) (*agents, error) {
	c.queue.Entries, c.queue.Bytes = 1000, 1
	q, err := queue.New(c.queue)
	if err != nil {
		return nil, err
	}
	a := &agents{client: c, jitter: o.Jitter, rand: Rand(o.Seed, actor), queue: q}
	a.server = newLimiter(&policy.Limit{Meters: []policy.Meter{perSecond(serverRate, serverBurst)}})
	limit := &policy.Limit{InFlight: c.inFlight}
	if c.rate > 0 {
		limit.Meters = append(limit.Meters, perSecond(c.rate, clientBurst))
	}
	a.own = newLimiter(limit)
	return a, nil
}

// arrive makes a call of a class come at a time.
func (a *agents) arrive(at time.Duration, class int) {
	id := len(a.calls)
	a.calls = append(a.calls, agentCall{class: class, arrived: int64(at)})
	a.clock.At(int64(at), func() { a.wait(id) })
}

// wait puts a call into the queue. The turn comes when all that happens at this time has: else whoever is first of those
// that come together would go first, whatever the discipline.
func (a *agents) wait(id int) {
	if _, out := a.queue.Push(a.clock.Now(), queue.Entry{ID: uint64(id), Class: a.calls[id].class}, 0); out != queue.Queued {
		a.failed++
		return
	}
	a.turnSoon()
}

func (a *agents) turnSoon() {
	if !a.turnDue {
		a.turnDue = true
		a.clock.After(0, a.turn)
	}
}

func (a *agents) turn() {
	a.turnDue = false
	wake := a.queue.Turn(a.clock.Now(), a)
	if wake != queue.Never {
		wake = max((wake+tick-1)/tick*tick, a.clock.Now()+1) // a turn at the same time would stand still
		a.clock.At(wake, a.turnSoon)
	}
}

// Try sends a call if the client's own limit lets it.
func (a *agents) Try(_ queue.Handle, e queue.Entry) queue.Answer {
	now, c := a.clock.Now(), &a.calls[e.ID]
	d := a.own.take(now, &c.held)
	switch {
	case d.Verdict == policy.Admit:
		a.send(int(e.ID))
		return queue.Sent()
	case d.Refusal.Dimension == policy.InFlight: // until one ends, which nobody knows
		return queue.Stop(queue.Never)
	}
	return queue.Stop(now + int64(d.Refusal.Wait))
}

// Timeout never comes: calls have no deadline.
func (a *agents) Timeout(queue.Handle, queue.Entry) {}

// send asks the server.
func (a *agents) send(id int) {
	c := &a.calls[id]
	var held policy.Reservation
	if c.attempts++; c.attempts > 1 {
		a.retries++
	}
	if a.server.take(a.clock.Now(), &held).Verdict != policy.Admit {
		a.rejected(id)
		return
	}
	a.clock.After(callTakes, func() {
		c := &a.calls[id]
		c.done = a.clock.Now()
		a.finished = append(a.finished, Point{seconds(c.done), float64(len(a.finished) + 1)})
		a.release(c)
	})
}

// release frees a call's place in flight.
func (a *agents) release(c *agentCall) {
	a.own.ledger.Settle(a.clock.Now(), &c.held, oneCall)
	a.turnSoon()
}

func (a *agents) rejected(id int) {
	c := &a.calls[id]
	a.rejections++
	a.release(c)
	if !a.client.retry {
		a.failed++
		return
	}
	delay := firstDelay << (c.attempts - 1)
	a.clock.After(a.jitter.spread(delay, a.rand), func() { a.wait(id) })
}
