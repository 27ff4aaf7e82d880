// SPDX-License-Identifier: Apache-2.0

package filtertest

import "time"

// A post is one that is on its way.
type post struct {
	there, back, timeout int64 // ns of the clock; there is 0 once it is
	take                 func()
	answer               func(status int, body []byte)
	status               int
	body                 []byte
}

// post has the controller answer what a worker's filter has posted.
func (w *Worker) post(path string, body []byte, timeout time.Duration, answer func(status int, body []byte)) {
	p := w.process
	p.Posts++
	of := w.current // as in Envoy, the answer goes with the stream; in a tick the plugin asks, whatever stream it has entered
	if w.ticks {
		of = nil
	}
	o := &post{there: p.Clock, back: p.Clock, timeout: p.Clock + int64(timeout)}
	if p.Late != nil {
		there, back := p.Late(path)
		o.there += int64(there)
		o.back = o.there + int64(back)
	}
	o.take = func() {
		if p.Control != nil {
			o.status, o.body = p.Control(path, body)
		}
	}
	o.answer = func(status int, body []byte) {
		if !w.Dead && (of == nil || !of.closed) {
			answer(status, body)
			w.takeBack()
		}
	}
	p.posted = append(p.posted, o)
}

// move brings what is on its way on.
func (p *Process) move() {
	posted := p.posted
	p.posted = nil
	for _, o := range posted {
		if o.there > 0 && o.there <= p.Clock {
			o.there = 0
			o.take()
		}
		switch {
		case o.answer == nil:
		case o.there == 0 && o.back <= p.Clock:
			o.answer(o.status, o.body)
			o.answer = nil
		case o.timeout <= p.Clock:
			o.answer(0, nil)
			o.answer = nil
		}
		if o.there > 0 || o.answer != nil {
			p.posted = append(p.posted, o)
		}
	}
}
