// SPDX-License-Identifier: Apache-2.0

// Package fleet shares a quota out over many Envoys: never more than the quota in sum, whatever is lost on the way, and nearly
// all of it to those who need it. It is the protocol alone, both sides of it: state machines that messages and the time
// drive, without a clock, a network or a goroutine.
//
// # Three ways to share
//
// A rate is shared with a [Ledger] at the controller and a [Share] at each [Node]: leases on parts of the rate, which move
// with demand. A quota of which a fair share is less than about a call per report is lent by the token of a whole call: a
// [Lender] and a [Borrower]. What does not refill is given in chunks: a [Stock] and a [Stash].
//
// # Leases
//
// A node sends a [Report] about once a second, and when its demand changes; each gets a [Grant] in answer. The ledger lists
// every grant before it is sent. What a node may be spending, U, is the highest of its listed grants that have not ended, and
// its floor. A report that names a version acknowledges it: all older grants leave the list. So:
//
//   - A node's rate is never above its U. It takes grants only of its own incarnation, of the epoch that it has heard of, and
//     of rising versions; so what left the list by acknowledgement is dead. A lease runs from the sending of the report that
//     it answers by the node's clock, and from its receipt, longer by more than clocks can differ, by the controller's; so what
//     left the list by time is dead too.
//   - The sum of all U is never above the limit. A grant up to U is free at any time; one above is paid from
//     limit - sum(U), and between grants each U only falls. First shrink, then wait for the acknowledgement, then grow.
//   - After a fail-over nothing is believed that was reported to an earlier epoch. What a node holds when it has heard of the
//     new one is its credit, and is within what the old ledger allowed; known nodes move the sum of their credits among
//     themselves until all old leases have ended.
//   - A floor is what a node keeps of its share when the lease has ended, until it is forgotten. It counts in U as long. There
//     are as many as [Quota.Nodes], and after a fail-over all that may be out are kept back ([Ledger.Resume]).
//   - A share change mints nothing. Levels + tokens on their way + the pool are never more than the burst, and rise at
//     the rate of the limit at most: a level is cut to the new burst, what is cut off goes back to the pool with the
//     acknowledgement, and only if it was inside the burst of a listed grant all the time (peer.covered); growth brings
//     tokens from the pool, that count with that very grant and before its end; the pool fills at limit - sum(U), and is cut
//     to the burst of that.
//
// # Windows
//
// A limit that holds in any window is enforced by a ring in each node, which admits what leaves
// remembered <= cap. Let a node hold max(cap, remembered). If the sum of what all hold, with what is remembered of lives that
// are gone, is never above the limit, then no window has more than the limit: a window that ends at t has what
// the rings remember at t, at most.
//
// So the ledger keeps a second U for each node, of caps, that is never below what the node holds:
//
//   - A cap counts while its lease lasts, and after that for as long as the ring may remember what was spent under it
//     ([Quota.Memory]).
//   - A report says what the ring remembers. With it the older grants are dead, and what was spent under them is in that
//     figure; so the acknowledgement of a shrink frees the old cap down to what is still remembered, and later reports free
//     the rest as it leaves the ring. Remembered units only rise by admissions under a cap that is listed.
//   - What is remembered may exceed the cap: then nothing is admitted until it has fallen below.
//   - The share of a lost node counts as spent at the end of its lease, and comes back a window later. It is no more than what
//     it remembered at its last report, as far as that has not left the window since, and what a full bucket and its highest
//     rate can have admitted until the end of the lease (trail.go). So is that of a life that ended: for a new incarnation
//     has an empty ring, and its node's U is the sum of both.
//   - A new controller lends caps for a window longer than rates only within the credits.
//   - A cut of the limit lowers caps in proportion, below what is remembered if need be. It grants nothing to anybody.
//
// Rates and caps are granted apart: the rate moves in a round trip, so what leaves one node's ring can be admitted by another
// at once; the caps follow as the rings age. With one figure for both a share would need a window to move.
//
// # On the wire
//
// A node posts a [FromNode] to ReportPath, over the cluster ControlCluster. The answer is 204, or 200 with a [Hello]: then it
// calls [Node.Hello], and reports at once. All grants come in the filter configuration SharesName, a [ToNode] in a
// google.protobuf.BytesValue, by way of a module that lays it into shared data; nothing in it counts twice, so whoever finds it may
// take all of it.
//
// Quotas are named by the bytes of a [Name]. A quota that refills is reported as a [Holding] at first, with version 0 and its
// demand. A [Grant] in answer makes it a [Share]; a [Lent], with or without ids, makes it one for a [Borrower] until a Grant
// comes. Limits of fixed windows and of trees are stocks: for these a node makes a [Stash] and draws. Calls in flight are not
// shared.
//
// # What it takes for granted
//
// Clocks differ in rate by at most a part in a thousand. At most one controller grants at a time, and its epoch is greater
// than all before. A node with a greater incarnation means that the process before it spends no more. A grant is acknowledged
// only after all workers enforce it. Calls are no larger than the burst of the share; larger ones owe it afterwards.
package fleet
