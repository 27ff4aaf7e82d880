// SPDX-License-Identifier: Apache-2.0

// Package queue decides who waits, for how long at most, and who goes next. It is the wait queue of one worker: the filter
// holds the requests, and asks it in which order they may try their buckets again. Like package policy it takes time as an
// argument (ns of a monotonic clock), starts nothing, does no IO and is not safe for concurrent use.
//
// # Use
//
// An arrival that [Queue.MayPass] lets pass tries its buckets at once. Any other is given to [Queue.Push], which takes it,
// or says why not. [Queue.Turn] then offers entries in the order of the discipline until one has to wait for what all share,
// and says when the next turn is due. Who leaves is taken out by [Queue.Cancel] and never offered again.
//
// # What waits are bounded by
//
// Say that the worker can send at least r entries in a second, that an entry x finds b entries queued, k of them of its own
// class, and count the sends before its own. Within a class all disciplines are first come, first served.
//
//   - [FIFO]: b. No arrival ever passes.
//   - [Strict]: for the highest class k; for all others nothing bounds it, as higher classes come first for ever.
//   - [Threshold], with the threshold a of x's class: once x is older than a, at most b more. So it waits at most
//     a + (b+1)/r. A class with threshold 0 never ages, and waits as under Strict.
//   - [Linear], with x's class d behind the highest (difference of priorities over rate): b, and who arrives in higher
//     classes within d. So after d nobody passes x any more.
//   - [Weighted], with weights w and entries that weigh the same: k, and of each other class j at most
//     floor((k+1) w_j / w_x) + 1. So a class's own queue times the sum of weights over its own bounds its wait, nearly.
//
// Entries that are skipped because a bucket of their own refuses them hold up nobody but later entries of their owner, and
// the bounds begin when that bucket admits them.
package queue
