// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"time"

	"github.com/weirproxy/weir/policy"
)

// A Quantity is what a provider's limit counts.
type Quantity uint8

// Quantities.
const (
	Unknown Quantity = iota
	Requests
	Tokens // input and output
	InputTokens
	OutputTokens
	InFlight
	numQuantities
)

var quantityNames = [numQuantities]string{"unknown", "requests", "tokens", "input_tokens", "output_tokens", "in_flight"}

func (q Quantity) String() string {
	if q >= numQuantities {
		return "unknown"
	}
	return quantityNames[q]
}

// A Dimension is a provider's limit as it names it.
type Dimension struct {
	Quantity Quantity
	Window   int64 // ns; 0 if it was not told
}

// Windows in ns.
const (
	second = int64(time.Second)
	minute = int64(time.Minute)
	hour   = int64(time.Hour)
	day    = 24 * hour
	month  = 30 * day
)

// In is the dimension by the name it has in policies; false if the provider did not tell enough, or counts what weir does not.
func (d Dimension) In() (policy.Dimension, bool) {
	if d.Quantity == InFlight {
		return policy.InFlight, true
	}
	for p := policy.RPS; p <= policy.OTPM; p++ {
		if p.Window() == time.Duration(d.Window) && quantities[p.Unit()] == d.Quantity {
			return p, true
		}
	}
	return 0, false
}

// Concerns says whether a refusal by such a limit may have been for one that counts in a unit.
func (d Dimension) Concerns(u policy.Unit) bool {
	switch d.Quantity {
	case Unknown:
		return true
	case Requests:
		return u == policy.Requests
	case Tokens, InputTokens, OutputTokens:
		return u == policy.Tokens || quantities[u] == d.Quantity
	}
	return false
}

var quantities = [...]Quantity{policy.Requests: Requests, policy.Tokens: Tokens, policy.InputTokens: InputTokens, policy.OutputTokens: OutputTokens}

func (d Dimension) String() string {
	if p, ok := d.In(); ok {
		return p.String()
	}
	s := d.Quantity.String()
	if d.Window > 0 {
		s += " per " + time.Duration(d.Window).String()
	}
	return s
}

// long says whether the window is of a kind that a refusal closes rather than slows: days and more.
func (d Dimension) long() bool { return d.Window >= day }
