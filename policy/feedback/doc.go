// SPDX-License-Identifier: Apache-2.0

// Package feedback is what weir makes of a provider's answers: whether a call came too fast, met an overloaded provider or
// spent the last of a quota; what the provider says of its limits; and how the rate follows from it.
//
// # From an answer
//
// [Classify] puts a [Reply] into a [Class] and says which [Dimension] refused and how long to wait. [Observe] reads the limit
// headers. Both believe nothing: a header of any length or content gives numbers that are never negative, never overflow, and
// waits of at most [MaxWait]. Neither allocates for an answer that is no refusal.
//
// # To a rate
//
// A [Controller] adapts one limit of one model (AIMD), a [Gate] holds it closed for as long as the provider asked, a [Ramp]
// bounds how fast it may climb, a [Learner] keeps what headers tell, and a [Probe] finds limits that nobody tells. Each
// returns what it changed, for the log. As everywhere in policy, time is an argument (ns of a monotonic clock unless it says
// wall), nothing is started and nothing is read or written.
package feedback
