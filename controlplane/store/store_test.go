// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/store/storetest"
	"github.com/weirproxy/weir/policy"
)

// each runs a test on both stores.
func each(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("bolt", func(t *testing.T) {
		s, err := Open("bolt:" + filepath.Join(t.TempDir(), "store"))
		must(t, err)
		defer s.Close()
		test(t, s)
	})
	t.Run("redis", func(t *testing.T) {
		s, err := Open(storetest.Redis(t).URL())
		must(t, err)
		defer s.Close()
		test(t, s)
	})
}

func takeOf(id string, tokens int64, specs ...policy.MeterSpec) *Take {
	k := &Take{ID: id, Lease: time.Minute, Cost: policy.Cost{Requests: 1, Input: tokens}, Items: []Item{{Bucket: "a"}}}
	for _, s := range specs {
		k.Items[0].Meters = append(k.Items[0].Meters, NewMeter(policy.NewMeter(s), time.Now()))
	}
	return k
}

// Under steady overload by small requests at least 0.95 of a limit is used, and never more than all of it.
func TestUsable(t *testing.T) {
	now := int64(1_764_000_000_000_000)
	s, err := openBolt(filepath.Join(t.TempDir(), "store"), func() int64 { return now })
	must(t, err)
	defer s.Close()
	s.db.NoSync = true
	spec := policy.MeterSpec{Dimension: policy.TPM, Limit: 10_000, Jitter: 100 * time.Millisecond}
	var taken []int64 // times
	const size, window = 100, 60_000_000
	for n := 0; now < 1_764_000_000_000_000+20*window; n++ {
		now += 37_001
		k := takeOf(fmt.Sprint(n), size, spec)
		a, err := s.Take(t.Context(), k)
		must(t, err)
		if a.Verdict == Admitted {
			taken = append(taken, now)
		}
	}
	most := 0
	for i := range taken {
		in := 0
		for _, at := range taken[:i+1] {
			if at > taken[i]-window {
				in++
			}
		}
		most = max(most, in)
	}
	each := float64(len(taken)*size) / (float64(now-taken[0]) / window)
	if t.Logf("of 10000 tokens a minute %.0f on average, %d at most", each, most*size); each < 9500 || most*size > 10_000 {
		t.Errorf("want 9500 on average, 10000 at most")
	}
}

// Many that take at once get a limit's worth together.
func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		var admitted atomic.Int64
		var all sync.WaitGroup
		start := time.Now()
		for w := range 16 {
			all.Go(func() {
				for n := range 20 {
					k := takeOf(fmt.Sprintf("%d-%d", w, n), 1, policy.MeterSpec{Dimension: policy.RPD, Limit: 100, BurstShare: policy.Whole})
					a, err := s.Take(t.Context(), k)
					if err != nil {
						t.Error(err)
					}
					if a.Verdict == Admitted {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		if admitted.Load() != 100 {
			t.Errorf("%d admitted of a limit of 100", admitted.Load())
		}
		t.Logf("%v for each of 320 takes, 16 at once", time.Since(start)/320)
	})
}

// Of replicas that all want to lead, one does, and what an earlier leader writes is refused.
func TestLead(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		ctx := t.Context()
		first, err := s.Lead(ctx, "shares", "a", 300*time.Millisecond)
		must(t, err)
		must(t, s.Save(ctx, first, Record{"day/x", []byte{0, 1}}, Record{"day/y", nil}, Record{"rate/x", []byte("")}))
		var held *HeldError
		if _, err := s.Lead(ctx, "shares", "b", time.Minute); !errors.As(err, &held) || held.By != "a" || held.For > 300*time.Millisecond || held.For <= 0 {
			t.Fatalf("got %v, want that a leads", err)
		}
		again, err := s.Lead(ctx, "shares", "a", 300*time.Millisecond)
		if must(t, err); again.Token != first.Token {
			t.Errorf("renewed: token %d, want %d", again.Token, first.Token)
		}
		if other, err := s.Lead(ctx, "another", "b", time.Minute); err != nil || other.Who != "b" {
			t.Errorf("another name: %v", err)
		}
		time.Sleep(350 * time.Millisecond)
		if err := s.Save(ctx, again, Record{"day/x", []byte("late")}); !errors.Is(err, ErrFenced) {
			t.Errorf("after its time: %v", err)
		}
		second, err := s.Lead(ctx, "shares", "b", time.Minute)
		if must(t, err); second.Token <= first.Token {
			t.Errorf("token %d after %d", second.Token, first.Token)
		}
		again.Until = time.Now().Add(time.Hour) // it believes so
		if err := s.Save(ctx, again, Record{"day/x", []byte("fenced")}); !errors.Is(err, ErrFenced) {
			t.Errorf("an earlier leader writes: %v", err)
		}
		must(t, s.Resign(ctx, again)) // which is not b's
		must(t, s.Save(ctx, second, Record{"day/z", []byte("b")}, Record{"rate/x", nil}))
		got, err := s.Load(ctx, "day/")
		if must(t, err); fmt.Sprint(got) != fmt.Sprint([]Record{{"day/x", []byte{0, 1}}, {"day/z", []byte("b")}}) {
			t.Errorf("got %v", got)
		}
		if got, err := s.Load(ctx, ""); err != nil || len(got) != 2 {
			t.Errorf("got %v %v", got, err)
		}
		must(t, s.Resign(ctx, second))
		third, err := s.Lead(ctx, "shares", "c", time.Minute)
		if must(t, err); third.Token <= second.Token {
			t.Errorf("token %d after %d", third.Token, second.Token)
		}
	})
}

// Who gives up on a take settles it with nothing; the take that comes afterwards gets nothing.
func TestSettledBeforeItCame(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		if settled, err := s.Settle(t.Context(), "x", policy.Cost{}); settled || err != nil {
			t.Fatal(settled, err)
		}
		spec := policy.MeterSpec{Dimension: policy.RPD, Limit: 1}
		for id, want := range map[string]Verdict{"x": Settled} {
			a, err := s.Take(t.Context(), takeOf(id, 1, spec))
			if must(t, err); a.Verdict != want {
				t.Errorf("%s: got %+v", id, a)
			}
		}
		a, err := s.Take(t.Context(), takeOf("y", 1, spec))
		if must(t, err); a.Verdict != Admitted {
			t.Errorf("the tokens are gone: %+v", a)
		}
	})
}

func TestChecks(t *testing.T) {
	each(t, func(t *testing.T, s Store) {
		good := func() *Take { return takeOf("x", 1, policy.MeterSpec{Dimension: policy.RPM, Limit: 1}) }
		for want, change := range map[string]func(*Take){
			"a name":         func(k *Take) { k.ID = "" },
			"a lease":        func(k *Take) { k.Lease = 0 },
			"a cost":         func(k *Take) { k.Cost.Output = -1 },
			"buckets":        func(k *Take) { k.Items = make([]Item, 17) },
			"a bucket twice": func(k *Take) { k.Items = append(k.Items, k.Items[0]) },
		} {
			k := good()
			change(k)
			if _, err := s.Take(t.Context(), k); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if _, err := s.Settle(t.Context(), "x", policy.Cost{Input: -1}); err == nil {
			t.Error("a cost below zero")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Take(over, good()); err == nil {
			t.Error("after its time")
		}
	})
}

func TestOpenSaysWhatToWrite(t *testing.T) {
	for address, want := range map[string]string{
		"":                                 "write bolt:PATH",
		"bolt:":                            "write bolt:PATH",
		"postgres://x":                     "write bolt:PATH",
		"bolt:/no/such/folder/x":           "no such file",
		"redis://u:s3cret@[::1":            "no URL",
		"redis://u:s3cret@h:1/x":           "invalid",
		"redis://u:s3cret@h:1?what=1":      "unexpected option: what",
		"rediss://u:s3cret@h:1?ca=/none":   "no such file",
		"redis://u:s3cret@h:1?ca=/none":    "belong to rediss://",
		"rediss://h:1?skip_verify=true":    "ca=FILE",
		"redis://u:s3cret@h:1?fleet=a%20b": "fleet=",
	} {
		s, err := Open(address)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v %v, want %q and no password", address, s, err, want)
		}
	}
	s, err := Open("redis://u:s3cret@127.0.0.1:1?fleet=a")
	must(t, err)
	defer s.Close()
	if s.String() != "redis://127.0.0.1:1" {
		t.Errorf("got %s", s)
	}
	if _, err := s.Take(t.Context(), takeOf("secret-tenant", 1)); !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	for address, warns := range map[string]bool{"redis://10.0.0.1:1": true, "redis://127.0.0.1:1": false, "rediss://10.0.0.1:1": false, "bolt:x": false} {
		if got := OpenWarning(address) != ""; got != warns {
			t.Errorf("%s: warns %v", address, got)
		}
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := OpenBolt(path)
	must(t, err)
	defer s.Close()
	if _, err := OpenBolt(path); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("got %v", err)
	}
}

// What nobody uses does not stay in the file for ever.
func TestSweep(t *testing.T) {
	now := time.Now().UnixMicro()
	s, err := openBolt(filepath.Join(t.TempDir(), "store"), func() int64 { return now })
	must(t, err)
	defer s.Close()
	for i := range 20 {
		k := takeOf(fmt.Sprint(i), 1, policy.MeterSpec{Dimension: policy.RPM, Limit: 10})
		k.Items[0].Bucket = fmt.Sprint(i)
		if i == 7 {
			k.Items[0].Meters = takeOf("", 1, policy.MeterSpec{Dimension: policy.RPD, Limit: 10}).Items[0].Meters
		}
		_, err := s.Take(t.Context(), k)
		must(t, err)
	}
	now += 3_600_000_000
	if s.sweepFrom(nil); s.count(boltRecords) != 1 {
		t.Errorf("%d records are left, want that of the day", s.count(boltRecords))
	}
	for i := range 4 {
		_, err := s.Take(t.Context(), takeOf(fmt.Sprint("late", i), 1, policy.MeterSpec{Dimension: policy.RPM, Limit: 10}))
		must(t, err)
	}
	if got := s.count(boltCalls); got > 4 || got != s.count(boltExpiry) {
		t.Errorf("%d calls, %d times: want those 4 at most", got, s.count(boltExpiry))
	}
}
