// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"time"
)

// limits compiles the limits of all tiers but the provider's.
func (c *compiler) limits(p *Policy) {
	l := &c.spec.Limits
	p.tenant = c.limitMap("limits.tenant", l.Tenant)
	p.user = c.limitMap("limits.user", l.User)
	p.tool = c.limitMap("limits.tool", l.Tool)
	p.tree = c.trees(l.Tree)
	p.environments = l.Environment
	p.environment = map[string]*Limit{}
	for _, name := range sortedKeys(l.Environment) {
		path := Join("limits.environment", name)
		c.name(path, name, MaxName)
		e := l.Environment[name]
		if e == nil || e.Share == 0 && !e.limits() {
			c.add(path, "write {share: 20%}, or limits such as {tpm: 20_000}", "no limit")
			continue
		}
		if e.limits() {
			p.environment[name] = c.limit(path, &e.LimitSpec)
		}
	}
}

// limits says whether the spec has a limit in any dimension.
func (s *LimitSpec) limits() bool {
	if s.Probe {
		return true
	}
	for _, n := range s.counts() {
		if n != nil {
			return true
		}
	}
	return false
}

// counts are the limits by dimension; money in micro-dollars.
func (s *LimitSpec) counts() [numDimensions]*Count {
	return [numDimensions]*Count{
		RPS: s.RPS, RPM: s.RPM, RPH: s.RPH, RPD: s.RPD, TPM: s.TPM, TPH: s.TPH, TPD: s.TPD, ITPM: s.ITPM, OTPM: s.OTPM,
		USDPerDay: micros(s.USDPerDay), USDPerMonth: micros(s.USDPerMonth), InFlight: s.InFlight,
	}
}

func micros(dollars float64) *Count {
	if dollars == 0 {
		return nil
	}
	return new(Count(math.Round(min(max(dollars, 0), MaxUnits) * 1e6)))
}

func (c *compiler) limitMap(path string, specs map[string]*LimitSpec) map[string]*Limit {
	m := make(map[string]*Limit, len(specs))
	for _, name := range sortedKeys(specs) {
		c.name(Join(path, name), name, 2*MaxName)
		if specs[name] == nil || !specs[name].limits() {
			c.add(Join(path, name), "write {rpm: 60}", "no limit")
			continue
		}
		m[name] = c.limit(Join(path, name), specs[name])
	}
	return m
}

func (c *compiler) name(path, name string, most int) {
	if name == "" || len(name) > most || !Printable(name) {
		c.add(path, "", "a name has 1 to %d bytes and no control characters", most)
	}
}

// Printable says whether a name has no control characters.
func Printable(name string) bool {
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	return true
}

// limit compiles one limit.
func (c *compiler) limit(path string, s *LimitSpec) *Limit {
	if s.Probe {
		c.add(Join(path, "probe"), "leave it out", "only limits of a provider's models are found by trying")
	}
	return c.limitWith(path, s, nil)
}

// limitWith compiles a limit that has other meters as well.
func (c *compiler) limitWith(path string, s *LimitSpec, meters []Meter) *Limit {
	var inFlight int64
	windowed := 0
	for d, n := range s.counts() {
		if n == nil {
			continue
		}
		field := Join(path, Dimension(d).String())
		if (*n < 1 || *n > MaxUnits) && Dimension(d).Unit() == Spend {
			c.add(field, "write US dollars, such as 200", "not between a millionth and a million")
			continue
		}
		if *n < 1 || *n > MaxUnits {
			c.add(field, "write 1 or more, or leave it out for no limit", "%d is not between 1 and %d", int64(*n), int64(MaxUnits))
			continue
		}
		if Dimension(d) == InFlight {
			inFlight = int64(*n)
			continue
		}
		windowed++
		meters = append(meters, c.meter(path, Dimension(d), int64(*n), s).Meters()...)
	}
	if s.Burst != nil && s.Burst.Count > 0 && windowed > 1 {
		c.add(Join(path, "burst"), "write a share of each limit, such as 25%", "a number cannot stand for %d dimensions", windowed)
	}
	if s.Burst != nil && s.Burst.Count == 0 && s.Burst.Share == 0 {
		c.add(Join(path, "burst"), "write 25%", "a burst of 0 admits nothing")
	}
	l := NewLimit(s.Mode, inFlight, meters...)
	l.Scope = c.scope(path, s.Scope)
	return l
}

func (c *compiler) meter(path string, d Dimension, n int64, s *LimitSpec) MeterSpec {
	m := MeterSpec{Dimension: d, Limit: n, Jitter: c.jitter, Calendar: c.calendar(Join(path, "reset"), s.Reset)}
	if s.Window != nil {
		m.Kind, m.Window = s.Window.Kind, time.Duration(s.Window.Length)
	}
	if s.Reset != nil && m.Window == 0 && d.Window() >= Day {
		m.Kind = Fixed
	}
	if s.Burst != nil {
		m.Burst, m.BurstShare = int64(s.Burst.Count), s.Burst.Share
	}
	return m
}

// trees compiles the budgets of request trees.
func (c *compiler) trees(specs map[string]*TreeSpec) map[string]*Limit {
	m := make(map[string]*Limit, len(specs))
	for _, name := range sortedKeys(specs) {
		path, s := Join("limits.tree", name), specs[name]
		c.name(path, name, MaxName)
		if s == nil || s.OnRetriesSpent != "degrade" && *s == (TreeSpec{TTL: s.TTL, Floor: s.Floor, OnRetriesSpent: s.OnRetriesSpent}) {
			c.add(path, "write {calls: 60, ttl: 30m}", "no limit")
			continue
		}
		field := Join(path, "on_retries_spent")
		relieved := c.goes(field, c.oneOf(field, s.OnRetriesSpent, "deny", "deny", "degrade")) == "degrade"
		retries := s.Retries
		if retries == 0 && relieved {
			retries = defaultRetries
		}
		ttl := cmp.Or(time.Duration(s.TTL), defaultTreeTTL)
		if ttl < time.Second || ttl > MaxWindow {
			c.add(Join(path, "ttl"), "write 30m", "%v is not between 1s and %v", ttl, MaxWindow)
		}
		var meters []Meter
		for _, b := range []struct {
			d Dimension
			n Count
		}{{TreeTokens, s.Tokens}, {TreeCalls, s.Calls}, {TreeRetries, retries}} {
			if b.n > MaxUnits {
				c.add(Join(path, b.d.String()), "write less", "%d is more than %d", int64(b.n), int64(MaxUnits))
			} else if b.n > 0 {
				meters = append(meters, NewMeter(MeterSpec{Dimension: b.d, Kind: Stock, Limit: int64(b.n), Window: ttl}))
			}
		}
		m[name] = NewLimit(Enforce, int64(min(s.InFlight, MaxUnits)), meters...)
		m[name].Scope = c.scope(path, "")
		m[name].relieved, m[name].floor = relieved, s.Floor
		if relieved && m[name].Scope == Central {
			m[name].Scope = FleetWide // an Envoy must know by itself that the retries are spent
		}
		if s.Floor > Whole/2 {
			c.add(Join(path, "floor"), "write 10%", "more than one half")
		}
	}
	return m
}

// What holds if the policy does not say: how long a request tree may live, and how many retries it has where only their end is
// spoken of.
const (
	defaultTreeTTL = 30 * time.Minute
	defaultRetries = 2
)
