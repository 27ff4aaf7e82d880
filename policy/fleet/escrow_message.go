// SPDX-License-Identifier: Apache-2.0

package fleet

import "errors"

// Asks are what a node says of a small quota: calls that wait for tokens, and what became of tokens that it had.
type Asks struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
	Key         string `json:"key"`
	Asks        []Ask  `json:"asks,omitempty"`
	Done        []Done `json:"done,omitempty"`
}

// An Ask is for the tokens of one call. It is repeated under the same id until it is answered.
type Ask struct {
	ID       uint64 `json:"id"` // greater in each new ask of this life of the node
	Units    int64  `json:"units"`
	Patience int64  `json:"patience"` // ns for which the call will still wait
}

// Done says that tokens are used, or come back unused.
type Done struct {
	ID       uint64 `json:"id"`
	Returned bool   `json:"returned,omitempty"`
}

// Lent are tokens on their way to a node, by the ids of the asks. Each may be used once, until Term after the first ask
// under its id was sent.
type Lent struct {
	Incarnation uint64   `json:"incarnation"`
	Key         string   `json:"key"`
	Term        int64    `json:"term"` // ns
	IDs         []uint64 `json:"ids,omitempty"`
}

// A Draw is what a node says of a stock: how much of what it was given it has used and returned, in sum over this life.
type Draw struct {
	Node        string `json:"node"`
	Incarnation uint64 `json:"incarnation"`
	Number      uint64 `json:"number"`
	Key         string `json:"key"`
	Demand      int64  `json:"demand,omitempty"` // units per minute
	Given       int64  `json:"given,omitempty"`
	Used        int64  `json:"used,omitempty"`
	Returned    int64  `json:"returned,omitempty"`
	Want        int64  `json:"want,omitempty"` // units that a waiting call needs
}

// A Chunk is what a node may use of a stock: in sum over this life of the node. It lasts for Term from the sending of the
// draw that it answers.
type Chunk struct {
	Incarnation uint64 `json:"incarnation"`
	Number      uint64 `json:"number"` // of the draw
	Key         string `json:"key"`
	Given       int64  `json:"given,omitempty"`
	Term        int64  `json:"term"` // ns
}

func (a *Asks) check() error {
	errs := []error{checkName("a node", a.Node), checkName("a key", a.Key)}
	for _, k := range a.Asks {
		errs = append(errs, checkAmounts(k.Units))
		if k.Patience < 0 || k.Patience > maxTime {
			errs = append(errs, errors.New("patience out of bounds"))
		}
	}
	return errors.Join(errs...)
}

func (l *Lent) check() error {
	if l.Term < 0 || l.Term > maxTime {
		return errors.New("term out of bounds")
	}
	return checkName("a key", l.Key)
}

func (d *Draw) check() error {
	return errors.Join(checkName("a node", d.Node), checkName("a key", d.Key), checkAmounts(d.Demand, d.Want), checkSums(d.Given, d.Used, d.Returned))
}

func (c *Chunk) check() error {
	if c.Term < 0 || c.Term > maxTime {
		return errors.New("term out of bounds")
	}
	return errors.Join(checkName("a key", c.Key), checkSums(c.Given))
}
