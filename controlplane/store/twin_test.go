// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/controlplane/store/storetest"
	"github.com/weirproxy/weir/policy"
)

// A pair is both stores at one clock, and next to them a list of all that was ever taken.
type pair struct {
	now    int64 // µs
	latest int64 // that it was
	bolt   *Bolt
	redis  *Redis
	takes  map[string][]*entry // by bucket
	calls  []*entry
}

// An entry is one call on one bucket.
type entry struct {
	id        string
	at, until int64
	cost      policy.Cost // as it counts now
	settled   bool
}

const testClock = "local now = tonumber(redis.call('GET', 'clock'))\n"

func newPair(t testing.TB) *pair {
	server := storetest.Redis(t)
	p := &pair{}
	var err error
	p.bolt, err = openBolt(filepath.Join(t.TempDir(), "store"), func() int64 { return p.now })
	must(t, err)
	p.bolt.db.NoSync = true // the disk is not what is tested
	p.redis, err = openRedis(server.URL(), testClock)
	must(t, err)
	t.Cleanup(func() { must(t, p.bolt.Close()); must(t, p.redis.Close()) })
	return p
}

func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// forget empties both.
func (p *pair) forget(t *rapid.T) {
	p.now, p.latest, p.takes, p.calls = 1_764_000_000_000_000, 0, map[string][]*entry{}, nil
	must(t, p.redis.client.FlushAll(t.Context()).Err())
	must(t, p.bolt.reset())
	p.tick(t, 0)
}

func (p *pair) tick(t *rapid.T, d int64) {
	p.now += d
	must(t, p.redis.client.Set(t.Context(), "clock", strconv.FormatInt(p.now, 10), 0).Err())
}

// back is tick with a clock that may be put back, in all by less than calls are remembered after their end.
func (p *pair) back(t *rapid.T, d int64) {
	p.tick(t, max(d, p.latest-100_000_000-p.now))
	p.latest = max(p.latest, p.now)
}

// take asks both, which must say the same.
func (p *pair) take(t *rapid.T, k *Take) Answer {
	a, err := p.bolt.Take(t.Context(), k)
	must(t, err)
	b, err := p.redis.Take(t.Context(), k)
	must(t, err)
	if a != b {
		t.Fatalf("%+v:\nfile  %+v\nRedis %+v", k, a, b)
	}
	if a.Verdict == Admitted {
		e := &entry{id: k.ID, at: p.now, until: p.now + k.Lease.Microseconds(), cost: k.Cost}
		p.calls = append(p.calls, e)
		for _, i := range k.Items {
			p.takes[i.Bucket] = append(p.takes[i.Bucket], e)
		}
	}
	return a
}

func (p *pair) settle(t *rapid.T, e *entry, actual policy.Cost) {
	a, err := p.bolt.Settle(t.Context(), e.id, actual)
	must(t, err)
	b, err := p.redis.Settle(t.Context(), e.id, actual)
	must(t, err)
	want := !e.settled && p.now < e.until
	if a != want || b != want {
		t.Fatalf("settled: file %v, Redis %v, want %v", a, b, want)
	}
	if want {
		e.settled, e.cost = true, actual
	}
}

// inWindow is what calls count that were taken in the window that ends now.
func (p *pair) inWindow(bucket string, m *Meter) (sum int64) {
	for _, e := range p.takes[bucket] {
		if e.at > p.now-m.Window {
			sum += e.cost.In(m.Unit)
		}
	}
	return sum
}

// flow is by how much the calls since any time are more than a bucket lets through.
func (p *pair) flow(bucket string, m *Meter) (over float64) {
	sum, entries := float64(0), p.takes[bucket]
	for i := len(entries) - 1; i >= 0; i-- {
		sum += float64(entries[i].cost.In(m.Unit))
		over = max(over, sum-float64(m.Burst)-float64(p.now-entries[i].at)*float64(m.Limit)/float64(m.Window))
	}
	return over
}

func (p *pair) open(bucket string) (n int64) {
	for _, e := range p.takes[bucket] {
		if !e.settled && p.now < e.until {
			n++
		}
	}
	return n
}

// pick is mostly a call that is not settled.
func (p *pair) pick(t *rapid.T) *entry {
	i := rapid.IntRange(0, len(p.calls)-1).Draw(t, "which")
	for range len(p.calls) {
		if i = (i + 1) % len(p.calls); !p.calls[i].settled && p.now < p.calls[i].until {
			break
		}
	}
	return p.calls[i]
}

var kinds = []policy.WindowKind{policy.Sliding, policy.Continuous}

func drawMeters(t *rapid.T) []policy.MeterSpec {
	specs := []policy.MeterSpec{{
		Dimension: rapid.SampledFrom([]policy.Dimension{policy.RPS, policy.RPM, policy.RPD}).Draw(t, "of requests"),
		Kind:      rapid.SampledFrom(kinds).Draw(t, "kind"), Limit: rapid.Int64Range(1, 40).Draw(t, "limit"),
	}}
	if rapid.Bool().Draw(t, "tokens too") {
		specs = append(specs, policy.MeterSpec{
			Dimension: rapid.SampledFrom([]policy.Dimension{policy.TPM, policy.OTPM, policy.TPH}).Draw(t, "of tokens"),
			Kind:      rapid.SampledFrom(kinds).Draw(t, "kind"), Limit: rapid.Int64Range(1, 100_000).Draw(t, "limit"), Jitter: 100 * time.Millisecond,
		})
	}
	return specs
}

// Both stores decide alike, hold every limit in any window, wait exactly, and take each id once.
func TestStoresHoldLimits(t *testing.T) {
	p := newPair(t)
	admitted, waited, refunded := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p.forget(t)
		specs := map[string][]policy.MeterSpec{"a": drawMeters(t), "b": drawMeters(t)}
		inFlight := rapid.Int64Range(0, 4).Draw(t, "in flight")
		step := rapid.SampledFrom([]int64{100, 100_000, 5_000_000, 400_000_000}).Draw(t, "pace")
		most := int64(30_000)
		for _, s := range append(specs["a"], specs["b"]...) {
			if s.Dimension.Unit() != policy.Requests {
				most = min(most, s.Limit/4)
			}
		}
		item := func(bucket string) (i Item) {
			i.Bucket, i.InFlight = bucket, inFlight
			for _, s := range specs[bucket] {
				i.Meters = append(i.Meters, NewMeter(policy.NewMeter(s), time.UnixMicro(p.now)))
			}
			return i
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "calls") {
			p.tick(t, rapid.Int64Range(0, step).Draw(t, "time"))
			if len(p.calls) > 0 && rapid.IntRange(0, 2).Draw(t, "settle") == 0 {
				e := p.pick(t)
				part := func(n int64) int64 { return rapid.Int64Range(0, n).Draw(t, "of it") }
				p.settle(t, e, policy.Cost{Requests: part(1), Input: part(e.cost.Input), Output: part(e.cost.Output)})
				if e.settled {
					refunded++
				}
				continue
			}
			k := &Take{
				ID: fmt.Sprintf("%d", n), Lease: time.Duration(step*rapid.SampledFrom([]int64{1, 5, 50}).Draw(t, "lease")) * time.Microsecond,
				Cost:  policy.Cost{Requests: 1, Input: rapid.Int64Range(0, most).Draw(t, "in"), Output: rapid.Int64Range(0, most).Draw(t, "out")},
				Items: []Item{item("a"), item("b")}[:rapid.IntRange(1, 2).Draw(t, "buckets")],
			}
			a := p.take(t, k)
			if w := a.Denied.Wait; a.Verdict == Denied && w != TooLarge && a.Denied.Meter >= 0 && inFlight == 0 {
				p.tick(t, w.Microseconds()-1)
				before := p.take(t, k)
				p.tick(t, 1)
				if before.Verdict == Denied {
					waited++
					if a = p.take(t, k); a.Verdict != Admitted {
						t.Fatalf("after the wait of %v it is not admitted: %+v", w, a)
					}
				} else if w > 2*time.Microsecond {
					t.Fatalf("it was to wait for %v, and was admitted before", w)
				}
				a = Answer{Verdict: Admitted}
			}
			if a.Verdict == Admitted {
				admitted++
				if again := mustTake(t, p.bolt, k); again.Verdict != Admitted {
					t.Fatalf("the same again: %+v", again)
				}
				if again := mustTake(t, p.redis, k); again.Verdict != Admitted {
					t.Fatalf("the same again: %+v", again)
				}
			}
			for _, i := range k.Items {
				for _, m := range i.Meters {
					if used := p.inWindow(i.Bucket, &m); m.Kind == policy.Sliding && used > m.Limit {
						t.Fatalf("%d of %d in a window", used, m.Limit)
					}
					if over := p.flow(i.Bucket, &m); m.Kind == policy.Continuous && over > 0 && !p.lent(i.Bucket, &m) {
						t.Fatalf("%v more than bucket and time let through", over)
					}
				}
				if open := p.open(i.Bucket); inFlight > 0 && open > inFlight {
					t.Fatalf("%d in flight of %d", open, inFlight)
				}
			}
		}
	})
	if admitted < 300 || waited < 30 || refunded < 100 {
		t.Errorf("too little was tried: %d admitted, %d waited, %d refunded", admitted, waited, refunded)
	}
}

// lent says whether a call was larger than the burst: a full bucket lets it through and owes the rest.
func (p *pair) lent(bucket string, m *Meter) bool {
	for _, e := range p.takes[bucket] {
		if e.cost.In(m.Unit) > m.Burst {
			return true
		}
	}
	return false
}

func mustTake(t *rapid.T, s Store, k *Take) Answer {
	a, err := s.Take(t.Context(), k)
	must(t, err)
	return a
}

// Whatever happens, charges, limits that change, clocks that jump, fixed windows and shadow limits among it, both say the same.
func TestStoresAgree(t *testing.T) {
	p := newPair(t)
	rapid.Check(t, func(t *rapid.T) {
		p.forget(t)
		shift := rapid.SampledFrom([]int{0, 20, 30, 35}).Draw(t, "size")
		draw := func() (i Item) {
			i.Bucket, i.Shadow, i.InFlight = "a", rapid.IntRange(0, 4).Draw(t, "shadow") == 0, rapid.Int64Range(0, 3).Draw(t, "in flight")
			for _, d := range []policy.Dimension{policy.RPM, policy.TPD, policy.TPM}[:rapid.IntRange(1, 3).Draw(t, "meters")] {
				s := policy.MeterSpec{
					Dimension: d, Limit: rapid.Int64Range(1, 1_000_000_000_000).Draw(t, "limit") >> shift,
					Kind: rapid.SampledFrom([]policy.WindowKind{policy.Sliding, policy.Continuous, policy.Fixed, policy.Stock}).Draw(t, "kind"),
				}
				s.Limit = max(s.Limit, 1)
				if rapid.Bool().Draw(t, "burst") {
					s.BurstShare = policy.Share(rapid.Int64Range(1, int64(policy.Whole)).Draw(t, "share"))
				}
				i.Meters = append(i.Meters, NewMeter(policy.NewMeter(s), time.UnixMicro(p.now)))
			}
			return i
		}
		var item Item
		for n := range rapid.IntRange(1, 50).Draw(t, "steps") {
			p.back(t, rapid.SampledFrom([]int64{0, 1, 1000, 1_000_000, 61_000_000, 7_200_000_000, 86_400_000_000, -1000, -100_000_000}).Draw(t, "time"))
			if n == 0 || rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				item = draw()
			}
			// In proportion to a limit, so that some calls fit.
			least := item.Meters[rapid.IntRange(0, len(item.Meters)-1).Draw(t, "by")].Limit
			part := func() int64 { return rapid.Int64Range(0, max(least/4, 2)).Draw(t, "cost") }
			if len(p.calls) > 0 && rapid.IntRange(0, 2).Draw(t, "settle") == 0 {
				p.settle(t, p.pick(t), policy.Cost{Requests: rapid.Int64Range(0, 2).Draw(t, "requests"), Input: part() / 2})
				continue
			}
			cost := policy.Cost{Requests: rapid.Int64Range(0, 2).Draw(t, "requests"), Input: part()}
			p.take(t, &Take{ID: fmt.Sprint(n), Lease: time.Hour, Cost: cost, Items: []Item{item}})
		}
	})
}
