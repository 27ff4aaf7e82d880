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
// # State
//
// The state of a tier key is a record: one value in the store, changed by compare-and-swap, with a meter for each dimension
// (bucket.go, ring.go, limit.go) and the calls in flight of each worker (inflight.go). Keys that come from requests live in a
// fixed number of slots (slots.go). All times are ns of a monotonic clock that the workers share; all amounts are int64 in
// requests or tokens.
package policy
