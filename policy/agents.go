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
	c.between("fanout.max", "write 64", b.Most, maxFanout)
	c.between("fanout.per_tree", "write 2", int64(b.PerTree), MaxPerTree)
	if b.TTL < time.Second || b.TTL > maxFanoutTTL {
		c.add("fanout.ttl", "write 60s", "%v is not between 1s and %v", b.TTL, maxFanoutTTL)
	}
	p.Hints = c.spec.Hints
	p.Endpoints = c.spec.Endpoints == nil || *c.spec.Endpoints
	for _, name := range sortedKeys(p.tool) {
		if name != defaultName && len(p.namedTools) < maxNamedTools {
			p.namedTools = append(p.namedTools, name)
		}
	}
}

func (c *compiler) between(path, hint string, n, most int64) {
	if n < 1 || n > most {
		c.add(path, hint, "%d is not between 1 and %d", n, most)
	}
}

// maxNamedTools bounds the tools that hints look at: the first by name.
const maxNamedTools = 16

// Owner is whose fan-out it is, or who wants to join one.
func (p *Policy) Owner(c *Caller) FanoutOwner {
	return FanoutOwner{p.Hasher.Key(TierTenant, c.Tenant), p.Hasher.Key(TierTree, c.Tenant, c.User, c.Tree)}
}
