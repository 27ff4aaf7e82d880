// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
)

// A Policy is a compiled policy: checked, completed, ready for decisions. It does not change.
type Policy struct {
	Mode      Mode
	FailOpen  bool // on_error: allow
	Providers []*Provider
	Trust     Trust
	Who       WhoSpec
	Secret    string // of the keyed hash of credentials
	Hasher    Hasher
	Parse     int64 // bytes of a body that are read
	Hold      int64 // bytes of a body that are held where what decides is not among those
	Output    int64 // tokens that are reserved for undeclared output
	Learned   bool  // output.reserve: learned
	Cap       bool  // output.cap: default
	Keep      bool  // settle.uncertain: keep
	Families  Patterns[string]
	Classes   []Class // the highest first; at least one
	Queue     QueueRule
	Explain   bool // callers may ask why: explain.header
	Log       Log
	Fleet     FleetTerms
	Shared    bool  // limits of the fleet's scope are held by shares
	Reports   bool  // a control plane is told what becomes of calls
	Since     int64 // when it came into force, ns of the clock of decisions; set by who puts it there
	Fanout    FanoutBounds
	Hints     HintsSpec
	Endpoints bool // whether callers may ask at /.weir

	slots        [numTiers]uint32
	environments map[string]*EnvironmentSpec
	environment  map[string]*Limit // limits of its own
	tenant       map[string]*Limit
	user         map[string]*Limit
	tool         map[string]*Limit
	tree         map[string]*Limit
	namedTools   []string // that have limits of their own
	routes       Patterns[route]
	prices       Patterns[PriceSpec]
	weights      Patterns[*WeightSpec]
	degrade      Patterns[*DegradeSpec]
	spill        Patterns[*Spill]
}

// A Provider is an upstream account.
type Provider struct {
	Name      string
	Prefix    string // without a slash at the end; empty: every path
	Dialect   string
	Unmetered Patterns[bool]
	Models    Patterns[*Model]
	PerModel  bool // limits or prices are not the same for all models
	AddUsage  bool // streams that do not say their usage are asked to
	Adapt     AdaptSpec
	Attempts  bool   // weir's filter counts Envoy's attempts in its cluster
	Rest      *Model // without a limit: the pool of models that match no entry
}

// A Model is the pool of one entry of a provider's models: all models that match it share its limits.
type Model struct {
	Pattern   string
	Limit     *Limit
	MaxOutput int64 // tokens; 0: not known

	key          Key
	environments map[string]*envShare
}

// An envShare is an environment's share of a model's limits.
type envShare struct {
	key   Key
	limit *Limit
}

// EndpointPrefix is the path under which weir answers itself.
const EndpointPrefix = "/.weir"

// Unknown is the name of who could not be identified: all of them share the key within their parent.
const Unknown = "unknown"

// defaultName is the entry for those who have none of their own.
const defaultName = "default"

// A Caller is who asks, by tier.
type Caller struct {
	Environment, Tenant, User, Tool string

	Tree string // within the user; empty: the request belongs to none

	Vouched bool   // the tenant is not one that anybody can make up
	Base    string // the environment that the caller would be in without its own word; its limits hold, too
}

// Key is what a caller is on a tier; empty where callers are not told apart.
func (c *Caller) Key(t Tier) string {
	switch t {
	case TierEnvironment:
		return c.Environment
	case TierTenant:
		return c.Tenant
	case TierUser:
		return c.User
	case TierTool:
		return c.Tool
	case TierTree:
		return c.Tree
	}
	return ""
}

// ProviderOf gives the provider whose prefix the path has, and the rest of the path; nil if there is none. The longest
// prefix wins. The path may have a query.
func (p *Policy) ProviderOf(path string) (*Provider, string) {
	for _, pr := range p.Providers { // longest first
		rest, ok := strings.CutPrefix(path, pr.Prefix)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
			return pr, rest
		}
	}
	return nil, ""
}

// Uses says whether who asks on a tier makes a difference.
func (p *Policy) Uses(t Tier) bool {
	switch t {
	case TierTool:
		return len(p.tool) > 0
	case TierTree:
		return len(p.tree) > 0
	case TierUser:
		return len(p.user) > 0 || len(p.tree) > 0
	case TierTenant:
		return len(p.tenant) > 0 || p.Uses(TierUser)
	case TierEnvironment:
		return len(p.environments) > 0
	}
	return false
}

// Path gives the buckets that a request has to pass, the narrowest first. m may be nil: no limit of the provider applies.
func (p *Policy) Path(to *Path, m *Model, c *Caller) {
	to.Len, to.Part, to.Central, to.Shadow = 0, nil, nil, p.Mode == Shadow
	if p.Mode == Off {
		return
	}
	if len(p.tool) > 0 {
		p.toolPath(to, c.Tool)
	}
	p.tenantPath(to, c)
	p.environmentPath(to, m, p.entry(c.Environment))
	if c.Base != "" && p.entry(c.Base) != p.entry(c.Environment) {
		p.environmentPath(to, m, p.entry(c.Base))
	}
	if m != nil {
		p.add(to, Step{Tier: TierProvider, Key: m.key, Limit: m.Limit})
	}
}

// tenantPath adds the buckets of the tree, the user and the tenant.
func (p *Policy) tenantPath(to *Path, c *Caller) {
	if !p.Uses(TierTenant) {
		return
	}
	tenant := p.Hasher.Key(TierTenant, c.Tenant)
	limit, named := limitOf(p.tenant, c.Tenant)
	space := Space{Vouched: c.Vouched || named}
	if len(p.tree) > 0 && c.Tree != "" {
		limit, _ := limitOf(p.tree, c.Tree)
		p.add(to, Step{Tier: TierTree, Space: space, Key: p.Hasher.Key(TierTree, c.Tenant, c.User, c.Tree), Owner: tenant, Limit: limit})
	}
	if len(p.user) > 0 {
		space := space
		limit := p.user[c.Tenant+"/"+c.User]
		if space.Named = limit != nil; !space.Named {
			limit = p.user[defaultName]
			if l := p.user[c.User]; l != nil && strings.IndexByte(c.User, '/') < 0 {
				limit = l
			}
		}
		p.add(to, Step{Tier: TierUser, Space: space, Key: p.Hasher.Key(TierUser, c.Tenant, c.User), Owner: tenant, Limit: limit})
	}
	space.Named = named
	p.add(to, Step{Tier: TierTenant, Space: space, Key: tenant, Limit: limit})
}

// environmentPath adds an environment's own limits, and its share of those of the model.
func (p *Policy) environmentPath(to *Path, m *Model, environment string) {
	if l := p.environment[environment]; l != nil {
		p.add(to, Step{Tier: TierEnvironment, Key: p.Hasher.Key(TierEnvironment, environment), Limit: l})
	}
	if m == nil {
		return
	}
	if e := m.environments[environment]; e != nil {
		p.add(to, Step{Tier: TierEnvironment, Key: e.key, Limit: e.limit})
	}
}

// limitOf gives the limit of a name, or the one for all that have none; named: it is its own.
func limitOf(limits map[string]*Limit, name string) (l *Limit, named bool) {
	if l = limits[name]; l != nil && name != defaultName {
		return l, true
	}
	return limits[defaultName], false
}

func (p *Policy) add(to *Path, s Step) {
	if s.Owner == 0 {
		s.Owner = s.Key
	}
	s.Space.Tier, s.Space.Slots = s.Tier, p.slots[s.Tier]
	s.Since = p.Since
	if s.Limit != nil && s.Limit.central != nil {
		whole := s
		whole.Limit = s.Limit.central
		if to.Central = append(to.Central, whole); s.Tier != TierProvider {
			return
		}
	}
	to.Add(s) // a provider's has a gate in any case
}

// entry is the policy's entry for an environment: its own, or the one that all without share.
func (p *Policy) entry(environment string) string {
	if p.environments[environment] == nil {
		return defaultName
	}
	return environment
}

// Lowers says whether a caller in environment from can only lose by saying that it is in environment to: its share is no
// larger, and from has no limits of its own to escape.
func (p *Policy) Lowers(from, to string) bool {
	from = p.entry(from)
	return p.environments[to] != nil && p.environment[from] == nil && p.Share(to) <= p.Share(from)
}

// Share is an environment's share of the providers' limits; Whole if it has none.
func (p *Policy) Share(environment string) Share {
	if e := p.environments[p.entry(environment)]; e != nil && e.Share > 0 {
		return e.Share
	}
	return Whole
}

// OutputBound is what is reserved for the output of a call whose declared output is declared tokens, or that declares none
// (-1): the policy's default, the model's maximum, a quarter of the smallest token limit of the path, and what that limit
// leaves beside the input, so that a request that fits an empty window is never refused for what it did not ask
// (RATIONALE.md, "Why is undeclared output not reserved in full?").
func (p *Policy) OutputBound(path *Path, m *Model, input, declared int64) int64 {
	if declared >= 0 {
		return declared
	}
	bound := p.Output
	if m != nil && m.MaxOutput > 0 {
		bound = min(bound, m.MaxOutput)
	}
	tokens, output := path.smallest(Tokens), path.smallest(OutputTokens)
	return max(min(bound, (tokens-1)/4+1, (output-1)/4+1, tokens-input), 0)
}

// OutputCap is what is written into a request that declares no output; 0: nothing is.
func (p *Policy) OutputCap(m *Model, declared int64) int64 {
	switch {
	case !p.Cap || declared >= 0:
		return 0
	case m != nil && m.MaxOutput > 0:
		return min(p.Output, m.MaxOutput)
	}
	return p.Output
}

// LearnedOutput is OutputBound where output.reserve is learned: what outputs are seldom longer than, if that is known (long
// is above 0), but never more than the call declares or may produce.
func (p *Policy) LearnedOutput(path *Path, m *Model, input, declared, long int64) int64 {
	bound := p.OutputBound(path, m, input, declared)
	if !p.Learned || long <= 0 {
		return bound
	}
	if declared >= 0 {
		return min(declared, long)
	}
	if m != nil && m.MaxOutput > 0 {
		long = min(long, m.MaxOutput)
	}
	return max(min(long, path.smallest(Tokens)-input, path.smallest(OutputTokens)), 0)
}

// GuessedInput bounds a guess of the input from the length of a body that nobody read by what the path admits at all: a
// guess must not refuse for good what might fit.
func (p *Policy) GuessedInput(path *Path, guess, output int64) int64 {
	return max(min(guess, path.smallest(Tokens)-output, path.smallest(InputTokens)), 0)
}

// smallest is the smallest limit of a path in a unit; forever if there is none.
func (p *Path) smallest(u Unit) int64 {
	least := int64(forever)
	of := func(steps []Step) {
		for i := range steps {
			for _, m := range steps[i].Limit.Meters {
				if m.Dimension.Unit() == u {
					least = min(least, m.Limit())
				}
			}
		}
	}
	of(p.Steps[:p.Len])
	of(p.Central)
	return least
}
