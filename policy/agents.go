// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"
)

// Bounds of fan-outs.
const (
	maxFanout    = 1024
	maxFanoutTTL = 10 * time.Minute
)

// agents compiles what agents and their planners may ask for.
func (c *compiler) agents(p *Policy) {
	f, b := &c.spec.Fanout, &p.Fanout
	b.Most = int64(cmp.Or(f.Max, 64))
	b.TTL = cmp.Or(time.Duration(f.TTL), time.Minute)
	b.PerTree = int(cmp.Or(f.PerTree, 2))
	if b.Most < 1 || b.Most > maxFanout {
		c.add("fanout.max", "write 64", "%d calls are not between 1 and %d", b.Most, maxFanout)
	}
	if b.TTL < time.Second || b.TTL > maxFanoutTTL {
		c.add("fanout.ttl", "write 60s", "%v is not between 1s and %v", b.TTL, maxFanoutTTL)
	}
	if b.PerTree < 1 || b.PerTree > MaxPerTree {
		c.add("fanout.per_tree", "write 2", "%d is not between 1 and %d", b.PerTree, MaxPerTree)
	}
	p.Hints = c.spec.Hints
	p.Endpoints = c.spec.Endpoints == nil || *c.spec.Endpoints
	for _, name := range sortedKeys(p.tool) {
		if name != defaultName && len(p.namedTools) < maxNamedTools {
			p.namedTools = append(p.namedTools, name)
		}
	}
}

// maxNamedTools bounds the tools that hints look at: the first by name.
const maxNamedTools = 16

// Owner is whose fan-out it is, or may join one: a tree of a user of a tenant, or what of them is known.
func (p *Policy) Owner(tenant, user, tree string) Key {
	return p.Hasher.Key(TierTree, tenant, user, tree)
}
