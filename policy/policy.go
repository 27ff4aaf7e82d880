// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

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

// LongState is the filter state by which a request with a body that is longer than what is read of it gets a route that keeps no
// more of it than that, to send it again.
const LongState = "weir.long"

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
