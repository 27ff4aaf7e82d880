// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
	"github.com/weirproxy/weir/policy/fleet"
)

// What calls cost that the control plane has admitted is told in the next tick, all that have ended since the last together: a tick
// belongs to the plugin, so that it does not matter which streams are gone.

// An owed settlement is one that the control plane has not taken yet.
type owed struct {
	central.Settle
	due   int64
	tries int
}

const (
	settleAgain = int64(500 * time.Millisecond) // and twice that after the second time, and so on
	maxSettles  = 4                             // times that it is sent; then the call counts as reserved
	maxOwed     = 8192
	maxPosts    = 8 // in a tick
)

// owe has the control plane told what a call cost.
func (v *VM) owe(now int64, id central.ID, cost policy.Cost) {
	v.oweAgain(owed{central.Settle{ID: id, Cost: cost}, now, 0})
}

func (v *VM) oweAgain(o owed) {
	if o.tries == maxSettles || len(v.centrals.owed) >= maxOwed {
		v.countSettles(settleLost, 1)
		return
	}
	v.centrals.owed = append(v.centrals.owed, o)
}

// payOwed tells what is due. It must be called in a tick, with no stream entered.
func (v *VM) payOwed(now int64) {
	for range maxPosts {
		var batch []owed
		rest := v.centrals.owed[:0]
		for _, o := range v.centrals.owed {
			if o.due <= now && len(batch) < central.MaxCalls {
				batch = append(batch, o)
			} else {
				rest = append(rest, o)
			}
		}
		if v.centrals.owed = rest; len(batch) == 0 {
			return
		}
		v.pay(batch)
	}
}

// pay posts settlements, and keeps those that were not taken.
func (v *VM) pay(batch []owed) {
	m := central.Settles{Node: v.nodeName()}
	for i := range batch {
		m.Calls = append(m.Calls, batch[i].Settle)
	}
	answered := func(status int, _ []byte) {
		defer v.guard("settle_answer")
		switch {
		case status/100 == 2:
			v.countSettles(settleTaken, len(batch))
			return
		case status/100 == 4, status == 501: // no other time either
			v.countSettles(settleLost, len(batch))
			return
		}
		for _, o := range batch {
			o.due = v.host.Now() + settleAgain<<o.tries
			o.tries++
			v.oweAgain(o)
		}
	}
	if !v.host.Post(fleet.ControlCluster, central.SettlePath, centralType, m.Append(nil), takeTimeout, answered) {
		answered(0, nil)
	}
}

// noteCentral takes down whether the control plane answers for central limits, and logs it when that changes.
func (v *VM) noteCentral(answers bool, status int) {
	switch c := &v.centrals; {
	case answers && c.down:
		c.down, c.mute = false, 0
		v.host.Log(Info, "weir: the control plane answers for central limits again")
	case !answers && !c.down:
		c.down = true
		v.host.Log(Warn, "weir: the control plane does not answer for central limits (status "+strconv.Itoa(status)+"): calls are held to the floor")
	}
}
