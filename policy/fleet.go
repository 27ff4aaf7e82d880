// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"time"
)

// A Scope says over what a limit holds.
type Scope uint8

// Scopes.
const (
	FleetWide Scope = iota // over all Envoys, by shares; the default
	PerNode                // over each Envoy by itself
	Central                // over all Envoys, by asking for each call
	numScopes
)

var scopeNames = [numScopes]string{"fleet", "node", "central"}

func (s Scope) String() string { return nameOf(scopeNames[:], s) }

// FleetTerms say how limits are shared over Envoys.
type FleetTerms struct {
	Lease, Forget time.Duration
	Floor         Share // of a limit, that all Envoys together keep without a lease
	MaxEnvoys     int64 // how many have a part of that
	Jitter        time.Duration
}

// Defaults and bounds of `fleet`.
const (
	defaultLease     = 10 * time.Second
	defaultForget    = time.Hour
	defaultFloor     = Whole / 10
	defaultMaxEnvoys = 100
	maxMaxEnvoys     = 100_000
)

// fleet completes what the policy says of the fleet.
func (c *compiler) fleet() FleetTerms {
	f := &c.spec.Fleet
	c.everywhere = c.oneOf("fleet.scope", f.Scope, scopeNames[FleetWide], scopeNames[:]...)
	t := FleetTerms{
		Lease: cmp.Or(time.Duration(f.Lease), defaultLease), Forget: cmp.Or(time.Duration(f.Forget), defaultForget),
		Floor: cmp.Or(f.Floor, defaultFloor), MaxEnvoys: cmp.Or(int64(f.MaxEnvoys), defaultMaxEnvoys), Jitter: c.jitter,
	}
	if t.Lease < time.Second || t.Lease > time.Hour {
		c.add("fleet.lease", "write 10s", "%v is not between 1s and 1h", t.Lease)
	}
	if t.Forget < time.Minute || t.Forget > Day {
		c.add("fleet.forget", "write 1h", "%v is not between 1m and 24h", t.Forget)
	}
	if t.Floor < 0 || t.Floor > Whole/2 {
		c.add("fleet.floor", "write 10%", "not between 0 and one half")
	}
	if t.MaxEnvoys < 1 || t.MaxEnvoys > maxMaxEnvoys {
		c.add("fleet.max_envoys", "write 100", "%d is not between 1 and %d", t.MaxEnvoys, maxMaxEnvoys)
	}
	return t
}

// scope is what a limit says of its scope, or the policy for all of them.
func (c *compiler) scope(path, s string) Scope {
	word := c.oneOf(Join(path, "scope"), s, c.everywhere, scopeNames[:]...)
	for i, n := range scopeNames {
		if n == word {
			return Scope(i)
		}
	}
	return FleetWide
}

// An Entry is a limit of the policy, for those who look limits up by keys.
type Entry struct {
	Tier     Tier
	Name     string // of the entry among those of its tier
	Key      Key    // that it is for; 0 if it is for many, as default is
	Limit    *Limit
	Provider string // of a provider's tier
}

// Entries are all limits of the policy.
func (p *Policy) Entries() (all []Entry) {
	each := func(t Tier, limits map[string]*Limit, key func(name string) Key) {
		for _, name := range sortedKeys(limits) {
			e := Entry{Tier: t, Name: name, Limit: limits[name]}
			if name != defaultName && key != nil {
				e.Key = key(name)
			}
			all = append(all, e)
		}
	}
	keyOf := func(t Tier) func(string) Key { return func(name string) Key { return p.Hasher.Key(t, name) } }
	for _, pr := range p.Providers {
		for _, m := range pr.Models.Values() {
			all = append(all, Entry{TierProvider, pr.Name + "/" + m.Pattern, m.key, m.Limit, pr.Name})
			for _, name := range sortedKeys(m.environments) {
				e := m.environments[name]
				all = append(all, Entry{TierEnvironment, name + "/" + pr.Name + "/" + m.Pattern, e.key, e.limit, ""})
			}
		}
	}
	for _, name := range sortedKeys(p.environment) { // here default is one that others do not stand for
		all = append(all, Entry{TierEnvironment, name, p.Hasher.Key(TierEnvironment, name), p.environment[name], ""})
	}
	each(TierTenant, p.tenant, keyOf(TierTenant))
	each(TierTool, p.tool, keyOf(TierTool))
	each(TierUser, p.user, p.userKey)
	each(TierTree, p.tree, nil)
	return all
}

// EntryKey names an entry of the policy's limits, such as default or acme: what a controller looks the limit up by where the key
// does not tell, for it knows a user only by that.
func EntryKey(h Hasher, t Tier, entry string) Key { return h.Key(t, "entry", entry) }

// nameLimits has each limit know its entry, by which reports name it. Where shares are, reports are about what is shared.
func (p *Policy) nameLimits(shares bool) {
	for _, e := range p.Entries() {
		if e.Limit.Mode != Off && (!shares || e.Limit.Scope == FleetWide) {
			e.Limit.entry = EntryKey(p.Hasher, e.Tier, e.Name)
		}
	}
}

// share has all limits of the fleet's scope be held by shares.
func (p *Policy) share() {
	for _, e := range p.Entries() {
		if e.Limit.Scope == FleetWide && e.Limit.Mode != Off {
			e.Limit.share()
		}
	}
}

// userKey is the key that an entry tenant/user is for; one that names no tenant is for many.
func (p *Policy) userKey(name string) Key {
	for i := range len(name) {
		if name[i] == '/' {
			return p.Hasher.Key(TierUser, name[:i], name[i+1:])
		}
	}
	return 0
}

// Sub tells the windows of one dimension apart.
func (m Meter) Sub() uint8 { return m.sub }

// WindowAt is the fixed window that the time wall lies in, both ends in ns since 1970.
func (m Meter) WindowAt(wall int64) (from, until int64) {
	return m.calendar.window(wall, m.rate.window)
}
