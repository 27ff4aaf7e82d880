// SPDX-License-Identifier: Apache-2.0

package dialect

// An eventBuffer holds the event of a stream that is not complete yet. One that grows beyond maxEvent, such as Responses'
// last one, which repeats all that came before, is not held but scanned as it passes, for its usage only.
type eventBuffer struct {
	data []byte
	long *jsonScanner
	last bool // the long one ends the stream
}

// maxEvent is how much of an event is held, and so how much memory a stream may take.
const maxEvent = 256 << 10

// part takes a part of an event.
func (a *Answer) part(b []byte) {
	e := &a.event
	if e.long == nil && len(e.data)+len(b) > maxEvent {
		e.long = &jsonScanner{}
		e.long.begins(a.form.answer)
		e.long.feed(e.data, a)
		e.data, e.last = nil, isLast(e.data)
	}
	if e.long != nil {
		e.long.feed(b, a)
		return
	}
	e.data = append(e.data, b...)
}

// endEvent takes the end of an event.
func (a *Answer) endEvent() {
	e := &a.event
	if e.long == nil {
		a.read(e.data)
	} else {
		a.over, a.covered = a.over || e.last, a.output
	}
	e.data, e.long, e.last = e.data[:0], nil, false
}

// lastEvent takes what is left at the end of the stream: it counts if it is all there.
func (a *Answer) lastEvent() {
	if e := &a.event; e.long != nil || complete(e.data) {
		a.endEvent()
	}
}

// complete says whether an object has its end.
func complete(b []byte) bool {
	var r documentReader
	b = trimStart(b)
	return len(b) > 0 && b[0] == '{' && r.scan(b) > 0 && r.depth == 0
}

// read reads an event; [DONE] is none.
func (a *Answer) read(data []byte) {
	defer a.mark(data, a.usage)
	if e := parse(data); e.IsObject() && a.form.event != nil {
		a.form.event(a, e)
	}
}
