// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Campaign leads name as often and as long as it can, until ctx ends. It calls lead with the term when it begins to; lead returns
// once its context ends, which is while the term still holds at the store. At most one of all that campaign at a store is in lead at
// a time, as far as their lead functions return within a sixth of the lease.
func Campaign(ctx context.Context, s Store, name, who string, lease time.Duration, log *slog.Logger, lead func(context.Context, Term)) {
	for ctx.Err() == nil {
		t, err := s.Lead(ctx, name, who, lease)
		if err == nil {
			log.Info("this control plane leads", "what", name, "epoch", t.Token)
			t = hold(ctx, s, t, lease, lead)
			log.Info("this control plane leads no more", "what", name, "epoch", t.Token)
			// Not with ctx, which may be over: whoever is next need not wait for the end of the lease.
			_ = s.Resign(context.WithoutCancel(ctx), t)
			continue
		}
		wait := lease / 3
		var held *HeldError
		if errors.As(err, &held) {
			wait = min(wait, held.For+time.Millisecond)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// hold runs lead and renews its term, until either ends.
func hold(ctx context.Context, s Store, t Term, lease time.Duration, lead func(context.Context, Term)) Term {
	ctx, end := context.WithCancel(ctx)
	defer end()
	done := make(chan struct{})
	go func() { defer close(done); lead(ctx, t) }()
	renew := time.NewTicker(lease / 3)
	defer renew.Stop()
	for {
		over := time.NewTimer(time.Until(t.Until) - lease/6)
		select {
		case <-done:
			over.Stop()
			return t
		case <-ctx.Done():
		case <-over.C:
			end()
		case <-renew.C:
			over.Stop()
			// No longer than this term: an answer that comes after it is of no use.
			limit, stop := context.WithDeadline(ctx, t.Until.Add(-lease/6))
			next, err := s.Lead(limit, t.Name, t.Who, lease)
			stop()
			var held *HeldError
			if err == nil && next.Token == t.Token {
				t = next
			} else if err == nil || errors.As(err, &held) { // another term, or another's
				end()
			}
			if ctx.Err() == nil {
				continue
			}
		}
		over.Stop()
		<-done
		return t
	}
}
