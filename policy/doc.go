// SPDX-License-Identifier: Apache-2.0

// Package policy is the mind of weir: it decides whether a request may leave, and keeps the accounts. It is pure: it takes
// time as an argument, shares state through a [Store] that the caller gives it, starts nothing and does no IO. The filter in
// Envoy, the control plane and the simulator all run this same code.
//
// # A policy
//
// A [Spec] is a policy as it is written; [Compile] checks it, completes it, and gives a [Policy], or a [FieldError] for each
// thing that is wrong. [Policy.ProviderOf] finds the provider of a path, Models its pool of a model, and [Policy.Path] the
// buckets that a request has to pass, the narrowest tier first.
//
// # A decision
//
// A worker has a [Ledger]. [Ledger.Reserve] takes a [Cost] from all buckets of a path or from none, and says in its
// [Decision] why not: which tier and dimension, how much is left, and the exact time after which it would be admitted. When
// the call has ended, [Outcome.Charge] says what it counts as, and [Ledger.Settle] makes it so.
//
// # What a limit promises
//
// A call counts, at the time it was admitted, as its reservation while it is open, and as what it used once it is settled.
// Then, for every meter and whatever the workers do at the same time:
//
//   - in any window never more than the limit counts (sliding windows);
//   - in any interval never more than burst + rate x time counts, of calls no larger than the burst;
//   - at least 0.95 of a limit can be used, by calls of up to a twentieth of it;
//   - a denied request changes nothing;
//   - calls that turn out larger than reserved are let through if they were in flight, and nothing more is admitted on that
//     bucket until the debt is worked off, which takes a window at most.
//
// # Dimensions and windows
//
// A [Dimension] is a unit (requests, tokens, input or output tokens, retries, micro-dollars) and the length of a window; a
// [WindowKind] says in what sense a limit holds over it:
//
//   - [Sliding], the default: in any window of that length. A bucket paces what a ring of sub-windows admits.
//   - [Continuous]: a bucket that refills all the time, as the providers' own that work so.
//   - [Fixed]: windows that begin at midnight or on the first of a month in the provider's time zone, see [Calendar] and
//     [Ledger.SetWall]. A call within 5 s of the edge counts on both sides, for nobody's clocks agree.
//   - [Subwindows]: sliding, and requests in each 10 s and each second beside it.
//   - [Stock]: used up once, until its time is over: what a request tree may use with all its descendants.
//
// What tokens of each kind count and cost says a [Rating].
//
// # Fan-out
//
// [Ledger.OpenFanout] takes the sum of the calls of several legs or says how many would fit; [Ledger.JoinFanout] gives each
// branch its part, at whatever worker.
//
// # More of the mind
//
// policy/queue has what waits, policy/feedback what providers' answers do to rates, policy/fleet how a limit is shared over
// many Envoys, policy/tokens counts text, and policy/sim runs all of them in virtual time (weir simulate).
//
// # State
//
// The state of a tier key is a record: one value in the store, changed by compare-and-swap, with a meter for each dimension
// (bucket.go, ring.go, counter.go, meterstate.go) and the calls in flight of each worker (inflight.go). Keys that come from requests live in a
// fixed number of slots (slots.go). All times are ns of a monotonic clock that the workers share; all amounts are int64 in
// requests, tokens or micro-dollars.
//
// The faults that tests must see are listed in internal/faults.
package policy
