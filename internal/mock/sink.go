// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// errCut says that the call asked for its connection to be broken here.
var errCut = errors.New("cut on command")

// sink sends the events of a stream, each in a write of its own, as providers do.
type sink struct {
	w     http.ResponseWriter
	flush http.Flusher // nil if the writer cannot
	ctx   context.Context
	buf   text // scratch for one event
	delay time.Duration
	cut   bool  // break in the middle of the content
	sent  int64 // output tokens that have left so far
	// finish is called just before the last event.
	finish func(used int64)
}

// last sends the event that ends the stream.
func (k *sink) last(event text) error {
	k.finish(k.sent)
	return k.send(event)
}

func newSink(ctx context.Context, w http.ResponseWriter, buf []byte) *sink {
	flusher, _ := w.(http.Flusher)
	return &sink{w: w, flush: flusher, ctx: ctx, buf: buf}
}

// send writes one event.
func (k *sink) send(event text) error {
	k.buf = event[:0] // keep what it may have grown to
	if err := k.ctx.Err(); err != nil {
		return err
	}
	if _, err := k.w.Write(event); err != nil {
		return err
	}
	if k.flush != nil {
		k.flush.Flush()
	}
	return nil
}

// pieces sends the content events, choice by choice for each piece, and keeps
// count of the tokens that have left.
func (k *sink) pieces(a *answer, event func(b text, choice, i int64) text) error {
	total := a.chunks * a.choices
	for i := range total {
		if k.cut && i >= total/2 {
			break
		}
		if i > 0 && !pause(k.ctx, k.delay) {
			return k.ctx.Err()
		}
		if err := k.send(event(k.buf[:0], i%a.choices, i/a.choices)); err != nil {
			return err
		}
		k.sent = portion(a.out, i+1, total)
	}
	if k.cut {
		return errCut
	}
	k.sent = a.out // also what no event carried
	return nil
}

// portion is n*part/whole without overflow.
func portion(n, part, whole int64) int64 {
	quo, _ := mulDiv(uint64(n), uint64(part), 0, uint64(whole))
	return int64(quo)
}

// pause waits, and says whether the caller is still there.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// each builds, closes and sends events in order.
func (k *sink) each(events ...func(b text) text) error {
	for _, event := range events {
		if err := k.send(event(k.buf[:0]).s("}\n\n")); err != nil {
			return err
		}
	}
	return nil
}
