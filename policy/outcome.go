// SPDX-License-Identifier: Apache-2.0

package policy

// An Ending is how a call came to its end.
type Ending uint8

// Endings.
const (
	NotSent    Ending = iota // denied after all, or the caller left before it was sent
	Rejected                 // the provider answered 4xx, or an error in place of an answer
	Broken                   // 5xx, or no byte of an answer came
	Left                     // the caller left before a byte of the answer came
	Complete                 // the answer came to its end
	Cut                      // caller or provider left in the middle of the answer
	NumEndings               // how many there are
)

var endingNames = [NumEndings]string{"not_sent", "rejected", "broken", "left", "complete", "cut"}

func (e Ending) String() string { return nameOf(endingNames[:], e) }

// A ChargeSource says where its numbers come from.
type ChargeSource uint8

// Charge sources.
const (
	FromNothing      ChargeSource = iota // there is nothing to charge
	FromUsage                            // the provider said it
	FromCount                            // counted here, for the provider did not say
	FromEstimate                         // estimated, for what the provider said is absurd
	NumChargeSources                     // how many there are
)

var chargeSourceNames = [NumChargeSources]string{"nothing", "usage", "count", "estimate"}

func (c ChargeSource) String() string { return nameOf(chargeSourceNames[:], c) }

// An Outcome is what is known of a call at its end, in tokens. What the provider did not say is -1.
type Outcome struct {
	Ending         Ending
	Input          int64 // as far as it counts by the provider's rules
	Output         int64
	Uncounted      int64 // input beside Input, which counts toward no limit
	InputEstimated int64
	OutputSeen     int64 // counted as it passed
	OutputSince    int64 // of it, what passed since Output was said
	References     bool  // the request names input that was not in it
	Pending        bool  // the answer only says that the work goes on elsewhere
}

// absurdFactor is how many times more than reserved a call may have used before nobody believes it. Of a call whose input is
// not all in its body, maxContext is the bound: no model reads more tokens at once.
const (
	absurdFactor = 100
	maxContext   = 20_000_000
)

// Charge is what a call counts as in the end: the settlement table of docs/reference.md. keep is the policy's
// settle.uncertain: keep.
func (o *Outcome) Charge(reserved Cost, keep bool) (Cost, ChargeSource) {
	input := o.InputEstimated
	counted := Cost{Requests: 1, Input: input, Output: o.OutputSeen}
	switch o.Ending {
	case NotSent:
		return Cost{}, FromNothing
	case Rejected:
		return Cost{Requests: 1}, FromNothing
	case Broken:
		if keep {
			return Cost{Requests: 1, Input: input}, FromEstimate
		}
		return Cost{Requests: 1}, FromNothing
	case Left: // the provider has the request, and reads it whether anybody waits or not
		return Cost{Requests: 1, Input: input}, FromEstimate
	}
	said := Cost{Requests: 1, Input: o.Input, Output: o.Output}
	if o.Input < 0 || o.Input == 0 && o.Ending == Cut { // some say 0 first and the input in the end
		said.Input = input
	}
	if o.Output < 0 {
		said.Output = o.OutputSeen
	}
	most := absurdFactor * min(max(counted.In(Tokens), reserved.In(Tokens)), MaxUnits)
	if o.References {
		most = max(most, maxContext)
	}
	switch {
	case o.Pending:
		return Cost{Requests: 1, Input: input, Output: reserved.Output}, FromEstimate
	case o.Input < 0 && o.Output < 0:
		return counted, FromCount
	case said.In(Tokens) == 0 || satAdd(said.In(Tokens), o.Uncounted) > most:
		return counted, FromEstimate
	case o.Ending == Cut && o.Output < 0:
		return said, FromCount
	case o.Ending == Cut && o.OutputSince > 0: // a running total that is behind what came
		said.Output += o.OutputSince
		return said, FromCount
	}
	return said, FromUsage
}
