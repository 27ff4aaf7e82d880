// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/controlplane/store/storetest"
)

// What has been used of a day's limit is known after kill -9, with one file and with Redis. In memory it is not.
func TestDayQuotaOutlivesRestarts(t *testing.T) {
	redis := storetest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	for what, address := range map[string]string{
		"bolt": "bolt:" + filepath.Join(t.TempDir(), "weir.db"), "redis": redis.URL(), "memory": "",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newReplicaRig(t, address, 1)
			p := r.replicas[0]
			stop := r.join("envoy", 1, 0, 400)
			r.until(what, func() bool { return r.used > r.day/2 })
			p.end(syscall.SIGKILL)
			stop()
			p.start()
			r.join("envoy", 2, 0, 400)
			before, at := int64(0), time.Now()
			r.until(what, func() bool { // all of it is used
				if r.used != before {
					before, at = r.used, time.Now()
				}
				return r.used > r.day || r.used > r.day/2 && time.Since(at) > 4*time.Second
			})
			if what == "memory" {
				if r.used <= r.day {
					t.Errorf("%d of %d were used: the test would notice nothing", r.used, r.day)
				}
				return
			}
			r.check(what)
			if r.used < r.day*7/10 {
				t.Errorf("%d of %d could be used", r.used, r.day)
			}
			t.Logf("%d of %d", r.used, r.day)
		})
	}
}

func (r *replicaRig) until(what string, holds func() bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r.mu.Lock()
		ok := holds()
		r.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: used %d, status %+v", what, r.used, r.replicas[0].status())
		}
	}
}

// What an earlier leader still saves is refused, and what the later one loads has all that was saved before.
func TestKeeperIsFenced(t *testing.T) {
	for what, open := range map[string]func(t *testing.T) (store.Store, error){
		"bolt": func(t *testing.T) (store.Store, error) {
			return store.Open("bolt:" + filepath.Join(t.TempDir(), "weir.db"))
		},
		"redis": func(t *testing.T) (store.Store, error) { return store.Open(storetest.Redis(t).URL()) },
	} {
		t.Run(what, func(t *testing.T) {
			s, err := open(t)
			must(t, err)
			defer s.Close()
			lead := func(who string) keeper {
				term, err := s.Lead(t.Context(), leads, who, time.Minute)
				must(t, err)
				return keeper{t.Context(), s, func() store.Term { return term }, false}
			}
			first := lead("first")
			must(t, first.Save([]fleet.Record{{Key: "stock/\x00a", Value: []byte("1")}, {Key: "seats/b", Value: []byte("2")}}))
			must(t, s.Resign(t.Context(), first.term()))
			second := lead("second")
			if err := first.Save([]fleet.Record{{Key: "stock/\x00a", Value: []byte("0")}}); !errors.Is(err, store.ErrFenced) {
				t.Errorf("the first one may save: %v", err)
			}
			one, begins, _ := first.NextEpoch()
			if two, again, _ := second.NextEpoch(); two <= one || again || begins != (what == "bolt") {
				t.Errorf("epochs %d and %d, the first of all: %v and %v", one, two, begins, again)
			}
			must(t, second.Save([]fleet.Record{{Key: "seats/b"}}))
			got, whole, err := second.Load()
			if must(t, err); !whole || len(got) != 1 || got[0].Key != "stock/\x00a" || string(got[0].Value) != "1" {
				t.Errorf("got %q, %v", got, whole)
			}
		})
	}
}

// Who says that nobody holds anything of an empty store is believed once.
func TestFreshStoreIsFirstOnce(t *testing.T) {
	s, err := store.Open(storetest.Redis(t).URL())
	must(t, err)
	defer s.Close()
	for i := range 2 {
		term, err := s.Lead(t.Context(), "fleet", "one", time.Minute)
		must(t, err)
		k := keeper{t.Context(), s, func() store.Term { return term }, true}
		if _, first, err := k.NextEpoch(); err != nil || first != (i == 0) {
			t.Errorf("start %d: first %v, %v", i, first, err)
		}
		must(t, s.Resign(t.Context(), term))
	}
}
