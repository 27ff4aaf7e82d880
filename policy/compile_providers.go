// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/policy/stable"
)

// Dialects that providers may speak. A dialect that weir does not know yet is refused rather than passed unlimited.
var dialects = []string{"openai", "anthropic", "gemini", "bedrock", "cohere", "mistral", "ollama", "generic"}

// spokenBy says which dialect those speak whose names one might write for it.
var spokenBy = map[string]string{
	"azure": "openai", "azure-openai": "openai", "vllm": "openai", "sglang": "openai", "groq": "openai", "deepseek": "openai",
	"openrouter": "openai", "together": "openai", "xai": "openai", "llama.cpp": "openai", "claude": "anthropic",
	"google": "gemini", "vertex": "gemini", "aws": "bedrock",
}

func (c *compiler) providers(p *Policy) {
	if len(c.spec.Providers) == 0 {
		c.add("providers", "write openai: {upstream: https://api.openai.com}", "no provider")
	}
	prefixes := map[string]string{}
	for _, name := range sortedKeys(c.spec.Providers) {
		s := c.spec.Providers[name]
		path := Join("providers", name)
		pr := &Provider{Name: name, Prefix: c.prefix(path, name, s.Prefix), Dialect: c.dialect(path, name, s.Dialect)}
		if other, ok := prefixes[pr.Prefix]; ok {
			c.add(Join(path, "prefix"), "write /"+name, "provider %s has the same prefix", other)
		}
		prefixes[pr.Prefix] = name
		c.name(path, name, 64)
		c.upstream(path, &s)
		pr.AddUsage = c.oneOf(Join(Join(path, "stream"), "include_usage"), s.Stream.IncludeUsage, "keep", "keep", "add") == "add"
		for _, u := range s.Unmetered {
			pr.Unmetered.Add(u, true)
		}
		pr.Adapt, pr.Attempts = c.adapt(Join(path, "adapt"), s.Adapt), s.Attempts || s.Upstream != ""
		pr.Rest = &Model{Pattern: "*", Limit: NewLimit(Enforce, 0), key: p.Hasher.Key(TierProvider, name, "*")}
		c.models(p, pr, Join(path, "models"), s.Models)
		pr.PerModel = !pr.Models.Uniform() || !p.prices.Uniform() || !p.weights.Uniform()
		for _, m := range s.Models {
			if m != nil && m.Probe && s.Adapt.Off {
				c.add(Join(path, "adapt"), "leave it out", "without its answers nothing can be found")
			}
		}
		p.Providers = append(p.Providers, pr)
	}
	stable.Sort(p.Providers, func(a, b **Provider) bool { return len((*a).Prefix) > len((*b).Prefix) })
}

func (c *compiler) prefix(path, name, prefix string) string {
	prefix = cmp.Or(prefix, "/"+name)
	if prefix[0] != '/' || strings.Contains(prefix, "//") || strings.ContainsAny(prefix, "?#% ") || !Printable(prefix) || strings.HasPrefix(prefix, EndpointPrefix) {
		c.add(Join(path, "prefix"), "write /"+name, "%q is no path prefix", prefix)
	}
	return strings.TrimSuffix(prefix, "/")
}

func (c *compiler) dialect(path, name, dialect string) string {
	if dialect == "" && slices.Contains(dialects, name) {
		return name
	}
	if dialect == "" {
		c.add(Join(path, "dialect"), "write one of "+strings.Join(dialects, ", ")+"; only a provider of such a name needs none", "missing")
		return "generic"
	}
	if d, ok := spokenBy[dialect]; ok {
		c.add(Join(path, "dialect"), "write "+d+", which it speaks", "unknown dialect %q", dialect)
		return d
	}
	return c.oneOf(Join(path, "dialect"), dialect, "generic", dialects...)
}

func (c *compiler) upstream(path string, s *ProviderSpec) {
	if (s.Upstream == "") == (s.Cluster == "") {
		c.add(path, "write upstream: https://HOST, or cluster: NAME of one that Envoy has", "needs either upstream or cluster")
		return
	}
	if s.Upstream == "" {
		return
	}
	if !goodUpstream(s.Upstream) {
		c.add(Join(path, "upstream"), "write https://api.openai.com", "%q is no http or https address", s.Upstream)
	}
}

// goodUpstream says whether s is scheme, host, and maybe a port and a path. (url.Parse is 30 KB of WebAssembly.)
func goodUpstream(s string) bool {
	scheme, rest, _ := strings.Cut(s, "://")
	host, path, _ := strings.Cut(rest, "/")
	_, err := url.PathUnescape(path)
	if scheme = strings.ToLower(scheme); err != nil || scheme != "http" && scheme != "https" || strings.ContainsAny(path, "?#") || !Printable(s) {
		return false
	}
	if !strings.HasPrefix(host, "[") {
		name, port, _ := strings.Cut(host, ":")
		return name != "" && strings.Trim(name, hostBytes) == "" && goodPort(port)
	}
	address, port, closed := strings.Cut(host[1:], "]")
	_, err = netip.ParseAddr(address)
	return err == nil && closed && (port == "" || port[0] == ':' && goodPort(port[1:])) && strings.Contains(address, ":")
}

const hostBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

func goodPort(port string) bool {
	n, err := strconv.ParseUint(cmp.Or(port, "80"), 10, 16)
	return err == nil && n > 0
}

func (c *compiler) models(p *Policy, pr *Provider, path string, specs map[string]*LimitSpec) {
	for _, pattern := range sortedKeys(specs) {
		s := specs[pattern]
		field := Join(path, pattern)
		c.name(field, pattern, MaxName)
		if s == nil || !s.limits() && s.MaxOutput == nil {
			c.add(field, "write {rpm: 60, tpm: 60_000}", "no limit")
			continue
		}
		m := &Model{Pattern: pattern, Limit: c.modelLimit(field, s), key: p.Hasher.Key(TierProvider, pr.Name, pattern)}
		if s.MaxOutput != nil {
			m.MaxOutput = int64(*s.MaxOutput)
			if m.MaxOutput < 1 || m.MaxOutput > MaxUnits {
				c.add(Join(field, "max_output"), "write 16_384", "%d is not between 1 and %d", m.MaxOutput, int64(MaxUnits))
			}
		}
		m.environments = c.shares(p, pr, m)
		pr.Models.Add(pattern, m)
	}
}

// shares gives each environment its share of a model's limits.
func (c *compiler) shares(p *Policy, pr *Provider, m *Model) map[string]*envShare {
	shares := map[string]*envShare{}
	for _, name := range sortedKeys(p.environments) {
		e := p.environments[name]
		if e == nil || e.Share == 0 {
			continue
		}
		limit := m.Limit.Scale(e.Share)
		limit.Mode = max(limit.Mode, e.Mode)
		shares[name] = &envShare{p.Hasher.Key(TierEnvironment, name, pr.Name, m.Pattern), limit}
	}
	return shares
}
