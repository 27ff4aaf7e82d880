// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"sync"
	"time"
)

// keepSeconds is how much of the past is kept by second.
const keepSeconds = 3600

// ledger is the record of what arrived. Each call is opened at its arrival and
// closed at its end.
type ledger struct {
	mu       sync.Mutex
	keep     int     // events
	events   []Event // a ring once it is full
	next     uint64  // number of the next event since the reset
	era      uint64  // counts resets
	total    Counts
	seconds  []Second // by second modulo keepSeconds
	models   groups
	keys     groups
	tags     groups
	inFlight int64
	peak     int64
}

// entry names an open event. The pointers go stale with a reset, which era tells.
type entry struct {
	era, index                uint64
	second, end, output       int64
	model, key, tag           *Counts
	admitted, closed, aborted bool
}

func newLedger(keep int) *ledger {
	l := &ledger{keep: max(0, keep)}
	l.reset()
	return l
}

// reset forgets everything but the calls in flight.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.era++
	l.events, l.next, l.total = nil, 0, Counts{}
	l.seconds = make([]Second, keepSeconds)
	l.models, l.keys, l.tags = groups{}, groups{}, groups{}
	l.peak = l.inFlight
}

// open records an arrival.
func (l *ledger) open(e *Event) entry {
	d := Counts{InputTokens: e.Input}
	switch e.Outcome {
	case Admitted:
		d.Admitted, d.Reserved = 1, e.Reserved
	case Refused:
		d.Refused = 1
	case Failed:
		d.Failed = 1
	case Free:
		d.Free = 1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Outcome == Admitted {
		l.inFlight++
		l.peak = max(l.peak, l.inFlight)
	}
	en := entry{
		era: l.era, index: l.next, second: e.At / int64(time.Second), admitted: e.Outcome == Admitted,
		model: l.models.of(e.Model), key: l.keys.of(e.Key), tag: l.tags.of(e.Tag),
	}
	l.push(e)
	l.add(&en, d)
	return en
}

func (l *ledger) push(e *Event) {
	switch {
	case l.keep == 0:
	case len(l.events) < l.keep:
		l.events = append(l.events, *e)
	default:
		l.events[l.next%uint64(l.keep)] = *e
	}
	l.next++
}

func (l *ledger) add(en *entry, d Counts) {
	l.total.add(d)
	en.model.add(d)
	en.key.add(d)
	en.tag.add(d)
	sec := &l.seconds[uint64(en.second)%keepSeconds]
	if sec.T < en.second {
		*sec = Second{T: en.second}
	}
	if sec.T == en.second { // not already another hour's
		sec.Counts.add(d)
	}
}

// close records how a call ended. A second close can only add that it was aborted.
func (l *ledger) close(en *entry, end, output int64, aborted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var d Counts
	if aborted && !en.aborted {
		en.aborted, d.Aborted = true, 1
	}
	if !en.closed {
		en.closed, en.end, en.output = true, end, output
		d.OutputTokens = output
		if en.admitted {
			l.inFlight--
		}
	}
	if en.era != l.era {
		return
	}
	l.add(en, d)
	if l.next-en.index <= uint64(l.keep) {
		e := &l.events[en.index%uint64(l.keep)]
		e.End, e.Output, e.Aborted = en.end, en.output, en.aborted
	}
}
