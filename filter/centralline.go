// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"

	"github.com/weirproxy/weir/policy/queue"
)

// Who waits in a line is asked for one after the other: a stream has one take under way at most, and asks again no sooner than it
// was told; meanwhile it holds up those behind it as a limit held here would, so that they do not ask either.

// maxAsking bounds how many of a line are asked for at once.
const maxAsking = 8

// awaits says what an entry waits for before anything is tried: an answer, the time that the last one told, or others.
func (l *line) awaits(w *waiter, e *queue.Entry, now int64) (a queue.Answer, wait bool) {
	v := l.plugin.vm
	switch {
	case len(w.path.Central) == 0:
		return a, false
	case w.stream.take != nil:
		return queue.SkipAlone(now + int64(eagerTick)), true
	case now < w.until:
		l.last = w.refusal
		return l.behind(&w.refusal, e, w.until), true
	case l.asking >= maxAsking, v.turning != nil && v.turning != w.stream:
		// From a callback of another stream nobody can be asked for: the answer would go with that stream.
		return queue.Stop(now + int64(time.Millisecond)), true
	}
	return a, false
}

// ask asks the control plane for an entry that the limits held here have admitted.
func (l *line) ask(w *waiter, e *queue.Entry, now int64) queue.Answer {
	v, s := l.plugin.vm, w.stream
	v.enter(s.id)
	if s.proceed(now, w) == Continue && v.turning != s {
		v.host.Resume()
	}
	if s.waiter == nil {
		return queue.Sent() // it is not there any more
	}
	a, _ := l.awaits(w, e, now)
	return a
}
