// SPDX-License-Identifier: Apache-2.0

package feedback

// A Gate holds one limit closed while the provider wants to be left alone. The zero Gate is open. It only ever closes for
// longer: an answer to an older call, which asks for less, does not open it, and neither does a success, for that was
// admitted before.
type Gate struct {
	until  int64 // ns
	class  Class
	misses int64 // how often in a row it closed without being told for how long
}

// Untold waits of an exhausted quota, in ns: money may be paid in at any moment and a look costs one call, so it is tried
// again soon at first, and then each time after twice as long.
const (
	untoldFirst = minute
	untoldMost  = hour
)

// Close takes a verdict, and a spread chosen by the caller (ns, at least 0) by which the reopening is delayed, so that not
// all who wait return at once. It says until when the gate is closed now, and whether this verdict changed that. A
// congestion or an overload closes it only for a wait that was told: the rest is the rate's matter.
func (g *Gate) Close(now int64, v Verdict, spread int64) (until int64, changed bool) {
	wait := v.Wait
	switch {
	case v.Class != Congestion && v.Class != Overload && v.Class != Exhausted:
		return g.until, false
	case v.Told:
		g.misses = 0
	case v.Class == Exhausted:
		if now < g.until { // it is closed already: this answer is a late one
			return g.until, false
		}
		wait = min(untoldFirst<<min(g.misses, 6), untoldMost)
		g.misses++
	default:
		return g.until, false
	}
	to := satAdd(now, min(max(wait, 0), MaxWait)+min(max(spread, 0), MaxWait))
	if to <= g.until || to == now {
		return g.until, false
	}
	g.until, g.class = to, v.Class
	return to, true
}

// Wait is how long it stays closed, in ns; 0 if it is open.
func (g *Gate) Wait(now int64) int64 { return max(g.until-now, 0) }

// Class is why it is closed; OK if it is open.
func (g *Gate) Class(now int64) Class {
	if now >= g.until {
		return OK
	}
	return g.class
}

// Open opens it by hand: an operator knows that there is quota again.
func (g *Gate) Open() { *g = Gate{} }

// Succeeded takes an OK answer of a call that was admitted at the time at: after an untold wait it was worth the look.
func (g *Gate) Succeeded(at int64) {
	if at >= g.until {
		g.misses = 0
	}
}

func satAdd(a, b int64) int64 {
	if a > 0 && b > maxTime-a {
		return maxTime
	}
	return a + b
}

const maxTime = 1<<63 - 1

// Until is when it was or will be open again.
func (g *Gate) Until() int64 { return g.until }
