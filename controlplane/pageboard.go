// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/history"
	"github.com/weirproxy/weir/policy"
)

// How much is remembered for the page, and of how many limits at most.
const (
	boardEvery   = 2 * time.Second
	boardSamples = 300 // ten minutes
	boardQuotas  = 200
	boardCounted = 2 * boardQuotas // counters
	boardGauges  = 5 * boardQuotas
)

// A board is what the page shows: it looks at everything now and then, whether somebody watches or not, for what was there
// before somebody came is what they want to see.
type board struct {
	server *Server
	every  time.Duration

	counters  *history.Ring // in sum: sent/ID, denied/ID
	gauges    *history.Ring // use/ID, limit/ID, granted/ID, queued/ID, rate/ID
	estimates estimates
	local     local

	mu       sync.Mutex
	now      []byte        // the newest [View], as JSON; nil: none yet
	fleet    fleet.Status  // of the same time
	changed  chan struct{} // closed when there is a newer one
	watchers int

	news chan struct{} // there is something that nobody should wait for
}

func newBoard(s *Server) *board {
	return &board{
		server: s, every: cmp.Or(s.config.Look, boardEvery), counters: history.New(boardSamples, boardCounted), gauges: history.New(boardSamples, boardGauges),
		local: local{counters: history.New(boardSamples, maxLocal)}, changed: make(chan struct{}), news: make(chan struct{}, 1),
	}
}

// run looks until ctx ends.
func (b *board) run(ctx context.Context) error {
	t := time.NewTicker(b.every)
	defer t.Stop()
	for {
		b.look(ctx, time.Now())
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case <-t.C:
				waits = false
			case <-b.news: // without a sample, for it is no time for one
				st := b.status()
				b.show(time.Now(), &st)
			}
		}
	}
}

// hurry has what has just changed shown at once.
func (b *board) hurry() {
	select {
	case b.news <- struct{}{}:
	default: // it will be
	}
}

// status is that of everything, with the busiest limits.
func (b *board) status() Status {
	return b.server.statusOf(func(f *fleet.Controller, ctx context.Context) (fleet.Status, error) {
		return f.Busiest(ctx, boardQuotas)
	})
}

// look takes a sample of everything, and tells who watches.
func (b *board) look(ctx context.Context, now time.Time) {
	st := b.status()
	if st.Unknown == "" {
		b.remember(now, st.Fleet.Quotas)
	}
	if b.server.config.Admin != nil {
		b.local.look(ctx, now, b.server.config.Admin())
	}
	b.show(now, &st)
}

// show tells who watches.
func (b *board) show(now time.Time, st *Status) {
	text, err := json.Marshal(b.view(now, st))
	if err != nil { // there is nothing in it that cannot be written
		b.server.log.Error("page", "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now, b.fleet = text, st.Fleet
	close(b.changed)
	b.changed = make(chan struct{})
}

// remember adds a sample of each limit.
func (b *board) remember(now time.Time, quotas []fleet.Quota) {
	sums, gauges := map[string]history.Number{}, map[string]history.Number{}
	for i := range quotas {
		if q := &quotas[i]; q.Seen {
			sums["sent/"+q.ID], sums["denied/"+q.ID] = history.Number(q.Sent), history.Number(q.Denied)
			gauges["queued/"+q.ID] = history.Number(q.Queued)
		}
	}
	b.counters.Add(now, sums)
	for i := range quotas {
		q := &quotas[i]
		gauges["use/"+q.ID], gauges["limit/"+q.ID], gauges["granted/"+q.ID] = b.use(now, q), history.Number(q.Limit), history.Number(q.Granted)
		if q.Rate > 0 {
			gauges["rate/"+q.ID] = history.Number(q.Rate)
		}
	}
	b.gauges.Add(now, gauges)
}

// use is what counts of a limit in its window: as the nodes' rings have it, or else what they have sent in that time.
func (b *board) use(now time.Time, q *fleet.Quota) history.Number {
	if q.Used != nil {
		return history.Number(*q.Used)
	}
	window, err := time.ParseDuration(q.Window)
	if err != nil || !q.Seen || window > boardSamples*b.every || q.Tier != policy.TierProvider.String() { // of others nobody says what was sent
		return history.Unknown
	}
	return b.counters.Grown("sent/"+q.ID, now.Add(-window))
}

// latest gives the newest view, and what is closed when there is a newer one.
func (b *board) latest() (view []byte, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, b.changed
}
