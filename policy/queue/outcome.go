// SPDX-License-Identifier: Apache-2.0

package queue

// An Outcome is what became of an attempt to wait. The names are those of replies, headers, metrics and logs.
type Outcome uint8

// Outcomes.
const (
	Queued       Outcome = iota // it waits
	QueueFull                   // no room for one more entry, or for its bytes, here or in the shared budget
	QueueTimeout                // the deadline came, or is known to come first
	numOutcomes
)

var outcomeNames = [numOutcomes]string{"queued", "queue_full", "queue_timeout"}

func (o Outcome) String() string {
	if o >= numOutcomes {
		return "unknown"
	}
	return outcomeNames[o]
}
