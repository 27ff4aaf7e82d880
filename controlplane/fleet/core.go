// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A core is the controller without clock, network and goroutine.
type core struct {
	log       *slog.Logger
	store     Store
	connected func() int // nodes that there are

	epoch  uint64
	first  bool // there was no controller before
	whole  bool // the store has all that one before has saved
	start  int64
	now    int64
	wall   time.Time
	params fleet.Params
	dir    *directory

	quotas  map[string]*quota
	taken   map[place]*quota
	nodes   map[string]*node
	plan    plan
	records map[string][]byte // as the store has them
	dirty   map[string][]byte // to be saved before anything is sent
	outbox  []*node
	flushAt int64 // when a document that waits is to be sent; 0: none does
	pushes  []fleet.Push
	saved   []func() // what is to be done when the store knows of all that is dirty
	changes []Change
	stats   Counters
	swept   int64
	census  census
	probes  map[keyOf]*probing

	storeErr error
	retry    int64
}

// Counters count since the controller began.
type Counters struct {
	Reports int64 `json:"reports"` // messages of nodes
	Twice   int64 `json:"twice"`   // of them, such as came before
	Hellos  int64 `json:"hellos"`  // of them, such as were of an earlier epoch
	Pushes  int64 `json:"pushes"`  // documents
	Bytes   int64 `json:"bytes"`   // in them
	Grants  int64 `json:"grants"`
}

// newCore makes a core that begins a new epoch.
func newCore(now int64, wall time.Time, s Store, log *slog.Logger, connected func() int) (*core, error) {
	epoch, first, err := s.NextEpoch()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	records, whole, err := s.Load()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	c := &core{
		log: log, store: s, connected: connected, epoch: epoch, first: first, whole: whole, start: now, now: now, wall: wall, swept: now,
		params: fleet.DefaultParams(), quotas: map[string]*quota{}, taken: map[place]*quota{}, nodes: map[string]*node{},
		probes: map[keyOf]*probing{}, records: map[string][]byte{}, dirty: map[string][]byte{},
	}
	for _, r := range records {
		c.records[r.Key] = r.Value
		if strings.HasPrefix(r.Key, stockRecord) && over(r.Value, wall) || c.pastLoans(&r) {
			c.dirty[r.Key] = nil
		}
	}
	c.takeCensus()
	return c, nil
}

func (c *core) at(now int64, wall time.Time) {
	c.now, c.wall = max(c.now, now), wall
}

// setPolicy puts a policy in force. Its times apply to quotas that are made from now on.
func (c *core) setPolicy(p *policy.Policy, spec *policy.Spec) {
	c.dir = newDirectory(p, spec)
	c.params = c.dir.params()
	for _, q := range c.quotas {
		c.review(q)
	}
}
