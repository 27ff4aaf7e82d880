// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/weirproxy/weir/policy/stable"
)

// APIVersion is the version of the policy format.
const APIVersion = "weir/v1"

// Defaults of a policy.
const (
	defaultParse  = 1 << 20
	defaultHold   = 16 << 20
	defaultOutput = 1024
	defaultJitter = 100 * time.Millisecond
	maxJitter     = 10 * time.Second

	// defaultSecret keys the hash of credentials where the policy has no secret of its own. It keeps credentials out of
	// metrics and logs; who knows it could test guesses, which is hopeless for the credentials that providers give out.
	defaultSecret = "weir"
)

// Compile checks a spec and completes it. The error joins a [FieldError] for each thing that is wrong.
func Compile(s *Spec) (*Policy, error) {
	c := &compiler{spec: s, jitter: defaultJitter}
	p := c.compile()
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	return p, nil
}

type compiler struct {
	spec       *Spec
	jitter     time.Duration
	everywhere string // the scope of limits that do not say it
	problems
}

func (c *compiler) compile() *Policy {
	s := c.spec
	switch s.APIVersion {
	case APIVersion:
	case "":
		c.add("apiVersion", "write apiVersion: "+APIVersion, "missing")
	default:
		c.add("apiVersion", "write "+APIVersion, "unknown version %q", s.APIVersion)
	}
	if j := s.Fleet.Jitter; j != nil {
		if c.jitter = time.Duration(*j); c.jitter > maxJitter {
			c.add("fleet.jitter", "write 100ms", "%v is more than %v", c.jitter, maxJitter)
		}
	}
	p := &Policy{
		Mode:     s.Mode,
		FailOpen: c.oneOf("on_error", s.OnError, "deny", "deny", "allow") == "allow",
		Trust:    c.trust(),
		Who:      c.who(),
		Secret:   cmp.Or(s.Secret, defaultSecret),
		Parse:    c.size("body.parse", "write 1MiB", s.Body.Parse, defaultParse, 1<<10, 64<<20),
		Output:   c.output(),
		Learned:  c.oneOf("output.reserve", s.Output.Reserve, "declared", "declared", "learned") == "learned",
		Cap:      c.oneOf("output.cap", s.Output.Cap, "none", "none", "default") == "default",
		Keep:     c.oneOf("settle.uncertain", s.Settle.Uncertain, "refund", "refund", "keep") == "keep",
		Families: c.families(),
		Explain:  s.Explain.Header,
		Log:      c.log(),
	}
	p.Hold = c.size("body.hold", "write 16MiB; it is at least body.parse", s.Body.Hold, max(defaultHold, p.Parse), p.Parse, 256<<20)
	p.Hasher = hasherOf(p.Secret)
	p.Fleet = c.fleet()
	c.limits(p)
	c.agents(p)
	c.ratings(p)
	c.slots(p)
	c.classes(p)
	c.providers(p)
	c.substitutes(p)
	if p.Reports = s.Fleet.Reports || s.Fleet.Shares; p.Reports {
		p.nameLimits(s.Fleet.Shares)
	}
	if p.Shared = s.Fleet.Shares; p.Shared && len(c.problems) == 0 {
		p.share()
		p.centralize()
	}
	return p
}

// hasherOf makes the hasher of keys from the secret, which may have any length.
func hasherOf(secret string) Hasher {
	a := Hasher{1, 2}.sum([]byte(secret))
	return Hasher{a, Hasher{a, 3}.sum([]byte(secret))}
}

func (c *compiler) size(path, hint string, n *Size, otherwise, least, most int64) int64 {
	if n == nil {
		return otherwise
	}
	if int64(*n) < least || int64(*n) > most {
		c.add(path, hint, "%d bytes are not between %d and %d", int64(*n), least, most)
	}
	return int64(*n)
}

func (c *compiler) output() int64 {
	n := c.spec.Output.Default
	if n == nil {
		return defaultOutput
	}
	if *n < 1 || *n > MaxUnits {
		c.add("output.default", "write 1024", "%d is not between 1 and %d", int64(*n), int64(MaxUnits))
	}
	return int64(*n)
}

// slots sets where each tier's records live: a power of two of slots for tiers whose keys come from requests.
func (c *compiler) slots(p *Policy) {
	for _, t := range []struct {
		tier      Tier
		path      string
		n         Count
		otherwise Count
	}{
		{TierTenant, "slots.tenant", c.spec.Slots.Tenant, 4096},
		{TierUser, "slots.user", c.spec.Slots.User, 16384},
		{TierTree, "slots.tree", c.spec.Slots.Tree, 65536},
		{TierTool, "slots.tool", c.spec.Slots.Tool, 1024},
	} {
		n := cmp.Or(t.n, t.otherwise)
		if n < MinSlots || n > 1<<20 {
			c.add(t.path, "write a power of two such as 4096", "%d is not between %d and %d", int64(n), MinSlots, 1<<20)
			continue
		}
		p.slots[t.tier] = 1 << bits.Len64(uint64(n-1))
	}
}

// sortedKeys gives the keys of a map in order, so that errors come in the same order each time.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	stable.Sort(keys, func(a, b *string) bool { return *a < *b })
	return keys
}
