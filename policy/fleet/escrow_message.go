// SPDX-License-Identifier: Apache-2.0

package fleet

// Asks are what a node says of a small quota: calls that wait for tokens, and what became of tokens that it had.
type Asks struct {
	Node        string
	Incarnation uint64
	Key         string
	Asks        []Ask
	Done        []Done
}

// An Ask is for the tokens of one call. It is repeated under the same id until it is answered.
type Ask struct {
	ID       uint64 // greater in each new ask of this life of the node
	Units    int64
	Patience int64 // ns for which the call will still wait
}

// Done says that tokens are used, or come back unused.
type Done struct {
	ID       uint64
	Returned bool
}

// Lent are tokens on their way to a node, by the ids of the asks. Each may be used once, until Term after the first ask
// under its id was sent.
type Lent struct {
	Incarnation uint64
	Key         string
	Term        int64 // ns
	IDs         []uint64
}

// A Draw is what a node says of a stock: how much of what it was given it has used and returned, in sum over this life.
type Draw struct {
	Node        string
	Incarnation uint64
	Number      uint64
	Key         string
	Demand      int64 // units per minute
	Given       int64
	Used        int64
	Returned    int64
	Want        int64 // units that a waiting call needs
}

// A Chunk is what a node may use of a stock: in sum over this life of the node. It lasts for Term from the sending of the
// draw that it answers.
type Chunk struct {
	Incarnation uint64
	Number      uint64 // of the draw
	Key         string
	Given       int64
	Term        int64 // ns
}
