// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A Tier says whose budget a limit is.
type Tier uint8

// Tiers, from the narrowest to the widest.
const (
	TierTool Tier = iota
	TierTree
	TierUser
	TierTenant
	TierEnvironment
	TierProvider
	numTiers
)

// NumTiers is how many there are.
const NumTiers = int(numTiers)

var tierNames = [numTiers]string{"tool", "tree", "user", "tenant", "environment", "provider"}

func (t Tier) String() string { return nameOf(tierNames[:], t) }

// A Unit is what a dimension counts.
type Unit uint8

// Units.
const (
	Requests Unit = iota
	Tokens        // input and output
	InputTokens
	OutputTokens
	Retries // requests that were sent before, by whomever
	Spend   // micro-dollars
)

// A Dimension is one way in which a limit counts: a unit and the length of a window, or requests in flight.
type Dimension uint8

// Dimensions, by the names they have in policies, metrics and headers.
const (
	RPS Dimension = iota
	RPM
	RPH
	RPD
	TPM
	TPH
	TPD
	ITPM
	OTPM
	USDPerDay
	USDPerMonth
	TreeTokens // of a request tree, in all
	TreeCalls
	TreeRetries
	InFlight
	numDimensions
)

// A Day and a Month are windows. A Month that is fixed is one of the calendar.
const (
	Day   = 24 * time.Hour
	Month = 30 * Day
)

var dimensions = [numDimensions]struct {
	name   string
	unit   Unit
	window time.Duration
}{
	RPS:         {"rps", Requests, time.Second},
	RPM:         {"rpm", Requests, time.Minute},
	RPH:         {"rph", Requests, time.Hour},
	RPD:         {"rpd", Requests, Day},
	TPM:         {"tpm", Tokens, time.Minute},
	TPH:         {"tph", Tokens, time.Hour},
	TPD:         {"tpd", Tokens, Day},
	ITPM:        {"itpm", InputTokens, time.Minute},
	OTPM:        {"otpm", OutputTokens, time.Minute},
	USDPerDay:   {"usd_per_day", Spend, Day},
	USDPerMonth: {"usd_per_month", Spend, Month},
	TreeTokens:  {"tokens", Tokens, 0},
	TreeCalls:   {"calls", Requests, 0},
	TreeRetries: {"retries", Retries, 0},
	InFlight:    {"in_flight", Requests, 0},
}

func (d Dimension) String() string {
	if d >= numDimensions {
		return "unknown"
	}
	return dimensions[d].name
}

// Unit is what the dimension counts.
func (d Dimension) Unit() Unit { return dimensions[d].unit }

// Window is the length that the dimension's name stands for; 0 for in flight, and for trees, whose policy says it.
func (d Dimension) Window() time.Duration { return dimensions[d].window }

// A WindowKind says in what sense a limit holds over its window.
type WindowKind uint8

// Window kinds.
const (
	Sliding    WindowKind = iota // never more than the limit in any window; the default
	Continuous                   // a bucket that refills all the time, as OpenAI's and Anthropic's limits do
	Fixed                        // windows that begin at fixed times of the clock, see [Calendar]
	Subwindows                   // sliding, and requests also in each 10 s and each second, as Azure judges them
	Stock                        // used up, not refilled, until its time is over: a request tree's
	numWindowKinds
)

var windowKindNames = [numWindowKinds]string{"sliding", "continuous", "fixed", "subwindows", "stock"}

func (k WindowKind) String() string { return nameOf(windowKindNames[:], k) }

// A Mode says what a limit does when it is hit.
type Mode uint8

// Modes.
const (
	Enforce Mode = iota // refuses
	Shadow              // counts what it would have refused, and lets it pass
	Off                 // does nothing
	numModes
)

var modeNames = [numModes]string{"enforce", "shadow", "off"}

func (m Mode) String() string { return nameOf(modeNames[:], m) }

func nameOf[T ~uint8](names []string, i T) string {
	if int(i) >= len(names) {
		return "unknown"
	}
	return names[i]
}

// A Share is a part of a whole, in millionths.
type Share int64

// Whole is 100 %.
const Whole Share = 1_000_000

// A Cost is what a call uses, or is expected to.
type Cost struct {
	Requests int64
	Input    int64 // tokens
	Output   int64 // tokens
	Retries  int64 // of the requests, how many were sent before
	Spend    int64 // micro-dollars
}

// In gives the cost in one unit.
func (c *Cost) In(u Unit) int64 {
	switch u {
	case Requests:
		return c.Requests
	case Tokens:
		return satAdd(c.Input, c.Output)
	case InputTokens:
		return c.Input
	case OutputTokens:
		return c.Output
	case Retries:
		return c.Retries
	default:
		return c.Spend
	}
}

// Times is the cost of n such calls.
func (c Cost) Times(n int64) Cost {
	return Cost{satMul(c.Requests, n), satMul(c.Input, n), satMul(c.Output, n), satMul(c.Retries, n), satMul(c.Spend, n)}
}

// Plus adds another cost.
func (c Cost) Plus(o Cost) Cost {
	return Cost{satAdd(c.Requests, o.Requests), satAdd(c.Input, o.Input), satAdd(c.Output, o.Output), satAdd(c.Retries, o.Retries), satAdd(c.Spend, o.Spend)}
}

// Minus takes another cost off.
func (c Cost) Minus(o Cost) Cost {
	return Cost{c.Requests - o.Requests, c.Input - o.Input, c.Output - o.Output, c.Retries - o.Retries, c.Spend - o.Spend}
}

// Covers says whether another cost fits in.
func (c Cost) Covers(o Cost) bool {
	return c.Requests >= o.Requests && c.Input >= o.Input && c.Output >= o.Output && c.Retries >= o.Retries && c.Spend >= o.Spend
}
