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
			Campaign(ctx, s, "shares", fmt.Sprint(i), 600*time.Millisecond, slog.New(slog.DiscardHandler), func(ctx context.Context, term Term) {
				if n := leading.Add(1); n != 1 {
					t.Errorf("%d lead at a time", n)
				}
				if before := last.Swap(term.Token); before >= term.Token {
					t.Errorf("token %d after %d", term.Token, before)
				}
				who.Store(int64(i))
				terms.Add(1)
				<-ctx.Done()
				if !time.Now().Before(term.Until) && terms.Load() == 1 {
					t.Log("the first term was renewed")
				}
				leading.Add(-1)
			})
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
