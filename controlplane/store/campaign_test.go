// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/store/storetest"
)

// Of three replicas one leads at a time, with tokens that grow, while Redis hangs, forgets all, and the one that leads goes.
func TestCampaign(t *testing.T) {
	server := storetest.Redis(t)
	var leading, terms atomic.Int64
	var last atomic.Uint64
	var all sync.WaitGroup
	var stops []context.CancelFunc
	var who atomic.Int64
	for i := range 3 {
		s, err := OpenRedis(server.URL())
		must(t, err)
		defer s.Close()
		ctx, stop := context.WithCancel(t.Context())
		stops = append(stops, stop)
		all.Go(func() {
			lead := func(ctx context.Context, now func() Term) {
				term := now()
				if n := leading.Add(1); n != 1 {
					t.Errorf("%d lead at a time", n)
				}
				if before := last.Swap(term.Token); before >= term.Token {
					t.Errorf("token %d after %d", term.Token, before)
				}
				who.Store(int64(i))
				terms.Add(1)
				<-ctx.Done()
				if later := now(); terms.Load() == 1 && !later.Until.After(term.Until) {
					t.Error("the first term was not renewed")
				}
				leading.Add(-1)
			}
			Campaign(ctx, s, Candidate{Name: "shares", Who: fmt.Sprint(i), Lease: 600 * time.Millisecond, Log: slog.New(slog.DiscardHandler), Lead: lead})
		})
	}
	leads := func(what string, n int64) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); terms.Load() < n || leading.Load() != 1; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: nobody leads after %d terms", what, terms.Load())
			}
		}
	}
	leads("at the start", 1)
	time.Sleep(2 * time.Second)
	if terms.Load() != 1 {
		t.Errorf("%d terms while nothing happened", terms.Load())
	}
	must(t, syscall.Kill(server.PID(), syscall.SIGSTOP))
	for end := time.Now().Add(5 * time.Second); leading.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it leads on while nobody can renew its term")
		}
	}
	must(t, syscall.Kill(server.PID(), syscall.SIGCONT))
	leads("after it hung", 2)
	server.Stop()
	time.Sleep(time.Second)
	server.Start()
	leads("after it forgot all", 3)
	stops[who.Load()]()
	leads("after the leader went", 4)
	for _, stop := range stops {
		stop()
	}
	all.Wait()
}

// A Redis that has forgotten who leads gives the lead to another at once, who waits until the first one must have noticed.
func TestCampaignWhenRedisForgets(t *testing.T) {
	server := storetest.Redis(t)
	const lease = 600 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	var leading atomic.Int64
	led := make(chan string, 10)
	campaign := func(s Store, who string) {
		all.Go(func() {
			Campaign(ctx, s, Candidate{Name: "shares", Who: who, Lease: lease, Log: slog.New(slog.DiscardHandler), Lead: func(ctx context.Context, now func() Term) {
				if leading.Add(1) != 1 {
					t.Errorf("%s begins while another leads", who)
				}
				led <- who
				<-ctx.Done()
				leading.Add(-1)
			}})
		})
	}
	s, err := OpenRedis(server.URL())
	must(t, err)
	defer s.Close()
	// The first one leads until its term is over, for it hears of nothing. It begins at once, as if its wait were over.
	term, err := s.Lead(ctx, "shares", "first", lease)
	must(t, err)
	leading.Add(1)
	all.Go(func() {
		for term.Holds() {
			time.Sleep(time.Millisecond)
		}
		leading.Add(-1)
	})
	server.Stop()
	server.Start()
	campaign(s, "second")
	if who := <-led; who != "second" {
		t.Errorf("%s leads", who)
	}
}
