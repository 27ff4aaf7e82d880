// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"time"
)

// storm runs a fleet through lost messages, crashes of nodes and of the controller, and says what was broken.
func storm(t testing.TB, seed uint64, fault func(*world)) *world {
	w := newWorld(t, seed, 4)
	w.fault = fault
	w.loss = 0.1 * w.rng.Float64()
	for range 14 {
		n := w.nodes[w.rng.IntN(len(w.nodes))]
		switch w.rng.IntN(6) {
		case 0:
			n.demand = 3000 * w.rng.Float64()
		case 1:
			n.calls = 3 * w.rng.Float64()
		case 2: // a node starts again
			n.up = false
			w.run(time.Duration(w.rng.IntN(3000)) * time.Millisecond)
			w.startNode(n, n.Name, n.Incarnation+1)
		case 3: // the controller does
			w.core = nil
			w.run(time.Duration(w.rng.IntN(15000)) * time.Millisecond)
			w.start()
		case 4: // a node hears and says nothing
			loss := w.loss
			w.loss = 0.95
			w.run(time.Duration(w.rng.IntN(12000)) * time.Millisecond)
			w.loss = loss
		case 5:
			w.store.broken = !w.store.broken
		}
		w.run(time.Duration(2000+w.rng.IntN(15000)) * time.Millisecond)
		w.store.broken = false
	}
	return w
}

func TestNeverMoreThanTheQuota(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	used := int64(0)
	for seed := range seeds {
		w := storm(t, seed, nil)
		n := w.nodes[0]
		if w.broken() != "" {
			t.Errorf("seed %d: too many %s", seed, w.broken())
		}
		for what, key := range map[string]string{"tokens": n.share.Key, "requests": n.small, "a day's": n.dayKey, "a tree's": n.treeKey} {
			used += w.sum(key)
			if testing.Verbose() {
				t.Logf("seed %d: %s %d, at most %d in a minute", seed, what, w.sum(key), w.most(key, time.Minute))
			}
		}
	}
	if used == 0 {
		t.Error("nothing was used")
	}
}

// The storm notices what it is there for.
func TestStormNotices(t *testing.T) {
	for what, fault := range map[string]func(*world){
		"a controller that believes to be the first": func(w *world) { w.core.first = true },
		"a store that forgets stocks": func(w *world) {
			for k := range w.core.records {
				if strings.HasPrefix(k, stockRecord) {
					delete(w.core.records, k)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(20) {
				if storm(t, seed, fault).broken() != "" {
					return
				}
			}
			t.Error("not noticed")
		})
	}
}

// A controller that starts again does not keep back floors that nobody has: it knows who has one.
func TestQuietAfterARestart(t *testing.T) {
	w := newWorld(t, 2, 4)
	w.nodes[0].demand, w.nodes[1].demand = 1500, 500
	w.run(90 * time.Second)
	w.start()
	w.run(2 * time.Minute)
	key := w.nodes[0].share.Key
	before := w.sum(key)
	w.run(2 * time.Minute)
	if got := w.sum(key) - before; got < 2*60_000*93/100 || w.broken() != "" {
		t.Errorf("%d tokens in 2 minutes, broken: %q", got, w.broken())
	}
}

// In quiet most of the quota can be used, by those who want it.
func TestQuiet(t *testing.T) {
	w := newWorld(t, 1, 4)
	w.nodes[0].demand, w.nodes[1].demand = 1500, 500
	w.run(70 * time.Second)
	before := w.sum(w.nodes[0].share.Key)
	w.run(3 * time.Minute)
	if got := w.sum(w.nodes[0].share.Key) - before; got < 3*57_000*9/10 || w.broken() != "" {
		t.Errorf("%d tokens in 3 minutes, broken: %q", got, w.broken())
	}
}

// Who has a floor is known to the controller after the next one as well.
func TestSeatsAreKept(t *testing.T) {
	w := newWorld(t, 3, 4)
	w.run(5 * time.Second)
	for range 10 {
		got := string(w.store.records[seatsRecord+w.nodes[0].share.Key])
		if strings.Count(got, "envoy-") != 4 {
			t.Fatalf("the store knows %q", got)
		}
		w.start()
		w.run(20 * time.Millisecond)
	}
}

// While the store fails nobody gets a floor or a chunk that it does not know of, and shares go on.
func TestStoreFails(t *testing.T) {
	w := newWorld(t, 3, 2)
	w.run(5 * time.Second)
	used := w.sum(w.nodes[0].treeKey)
	w.store.broken = true
	fresh := &worldNode{demand: 500, calls: 5}
	w.nodes = append(w.nodes, fresh)
	w.startNode(fresh, "envoy-z", 1)
	w.run(20 * time.Second)
	for what, n := range map[string]*worldNode{"old": w.nodes[0], "new": fresh} {
		rate := n.share.Terms(n.local(w.now)).Rate
		if (rate > 0) != (what == "old") {
			t.Errorf("the %s node has a share of %d", what, rate)
		}
	}
	if got := w.sum(w.nodes[0].treeKey) - used; got > 50 {
		t.Errorf("%d calls of the tree without the store", got)
	}
	w.store.broken = false
	w.run(5 * time.Second)
	if rate := fresh.share.Terms(fresh.local(w.now)).Rate; rate == 0 {
		t.Error("the new node has no share when the store works again")
	}
}
