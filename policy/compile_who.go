// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strings"

	"github.com/weirproxy/weir/policy/brief"
)

// Trust says whose identity headers are believed.
type Trust struct {
	All   bool
	Peers Patterns[bool] // URI SANs of client certificates
	Nets  []netip.Prefix // addresses of callers
}

// HasPeers says whether any certificate is believed.
func (t *Trust) HasPeers() bool { return t.Peers.Len() > 0 }

// Peer says whether a caller with this URI SAN is believed.
func (t *Trust) Peer(uri string) bool {
	ok, _ := t.Peers.Lookup(uri)
	return t.All || ok
}

// Addr says whether a caller with this address is believed.
func (t *Trust) Addr(a netip.Addr) bool {
	for _, n := range t.Nets {
		if n.Contains(a.Unmap()) {
			return true
		}
	}
	return t.All
}

func (c *compiler) trust() (t Trust) {
	for i, s := range c.spec.Trust {
		if s == "all" {
			t.All = true
			continue
		}
		if strings.Contains(s, "://") {
			t.Peers.Add(s, true)
			continue
		}
		if n, err := netip.ParsePrefix(s); err == nil {
			t.Nets = append(t.Nets, n.Masked())
			continue
		}
		if a, err := netip.ParseAddr(s); err == nil {
			t.Nets = append(t.Nets, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		c.add(brief.Sprintf("trust[%d]", i), "write a URI such as spiffe://mesh/agents/*, a network such as 10.0.0.0/8, or all",
			"%q is no URI and no network", s)
	}
	return t
}

// defaultWho is where the keys come from if the policy does not say.
func defaultWho() WhoSpec {
	header := func(name string) Source { return Source{FromHeader, name} }
	return WhoSpec{
		Environment: []Source{header("x-environment"), {FromDefault, "production"}},
		Tenant:      []Source{{Kind: FromPeer}, header("x-tenant"), {Kind: FromAPIKey}},
		User:        []Source{header("x-user"), {FromBody, "user"}, {FromBody, "metadata.user_id"}},
		Tree:        []Source{header("x-request-tree"), {Kind: FromTraceID}},
		Tool:        []Source{header("x-tool")},
		Class:       []Source{header("x-priority"), {FromDefault, "interactive"}},
	}
}

// credentials are headers that pass to the provider unchanged, so that they cannot name a tier.
var credentials = []string{"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "proxy-authorization"}

func (c *compiler) who() WhoSpec {
	w, d := c.spec.Who, defaultWho()
	for _, t := range []struct {
		path      string
		sources   *[]Source
		otherwise []Source
	}{
		{"who.environment", &w.Environment, d.Environment}, {"who.tenant", &w.Tenant, d.Tenant}, {"who.user", &w.User, d.User},
		{"who.tree", &w.Tree, d.Tree}, {"who.tool", &w.Tool, d.Tool}, {"who.class", &w.Class, d.Class},
	} {
		if *t.sources == nil {
			*t.sources = t.otherwise
		}
		for i, s := range *t.sources {
			path := brief.Sprintf("%s[%d]", t.path, i)
			c.source(path, s)
			if s.Kind == FromDefault && i < len(*t.sources)-1 {
				c.add(path, "put default last", "nothing after default %s is ever asked", s.Arg)
			}
		}
	}
	return w
}

// framing are headers that must reach the provider as they are.
var framing = []string{
	"content-type", "content-length", "content-encoding", "transfer-encoding", "accept", "accept-encoding", "host", "te", "trailer",
	"connection", "upgrade", "expect",
}

func (c *compiler) source(path string, s Source) {
	if s.Kind != FromHeader {
		return
	}
	for _, h := range credentials {
		if s.Arg == h {
			c.add(path, "write api-key", "header %s holds a credential, which must reach the provider", h)
		}
	}
	for _, h := range framing {
		if s.Arg == h {
			c.add(path, "take a header of your own such as x-tenant", "header %s is part of how HTTP or a body is read", h)
		}
	}
	if strings.HasPrefix(s.Arg, ":") {
		c.add(path, "", "pseudo header %s cannot name a tier", s.Arg)
	}
}

// families of tokenizers that weir knows, by the names of policy/tokens.
var families = []string{"o200k", "cl100k", "claude", "claude-4.7", "claude-2", "gemini", "llama", "qwen", "deepseek", "mistral", "other"}

// defaultFamilies says which tokenizer counts which model if the policy does not say. A model may have its vendor before
// its name, as resellers and Bedrock write it. Of gpt-4 and before only these have the older vocabulary.
var defaultFamilies = [...][2]string{
	{"gpt-*", "o200k"}, {"chatgpt-*", "o200k"}, {"o1*", "o200k"}, {"o3*", "o200k"}, {"o4*", "o200k"}, {"codex-*", "o200k"}, {"openai*gpt-*", "o200k"},
	{"gpt-4", "cl100k"}, {"gpt-4-*", "cl100k"}, {"gpt-3.5*", "cl100k"}, {"text-embedding-*", "cl100k"},
	{"*claude*", "claude"}, {"*claude-opus-4-7*", "claude-4.7"}, {"*claude-opus-4-8*", "claude-4.7"}, {"*claude-opus-4.7*", "claude-4.7"}, {"*claude-opus-4.8*", "claude-4.7"},
	{"*claude-opus-5*", "claude-4.7"}, {"*claude-sonnet-5*", "claude-4.7"}, {"*claude-haiku-5*", "claude-4.7"}, {"*claude-fable-5*", "claude-4.7"},
	{"*claude-1*", "claude-2"}, {"*claude-2*", "claude-2"}, {"*claude-v2*", "claude-2"}, {"*claude-instant*", "claude-2"},
	{"*gemini*", "gemini"}, {"*gemma*", "gemini"}, {"*llama*", "llama"}, {"*Llama*", "llama"}, {"*qwen*", "qwen"}, {"*Qwen*", "qwen"}, {"qwq*", "qwen"},
	{"*deepseek*", "deepseek"}, {"*DeepSeek*", "deepseek"}, {"*mistral*", "mistral"}, {"*Mistral*", "mistral"}, {"ministral*", "mistral"},
	{"codestral*", "mistral"}, {"magistral*", "mistral"}, {"devstral*", "mistral"}, {"pixtral*", "mistral"},
	// These have the name, but not the vocabulary, which a build may count exactly.
	{"*mixtral*", "other"}, {"*Mixtral*", "other"}, {"*mistral-7b*", "other"}, {"*Mistral-7B*", "other"}, {"*mistral-large-24*", "other"}, {"codestral-2405*", "other"},
	{"*qwen3.*", "other"}, {"*Qwen3.*", "other"}, {"*deepseek-v2*", "other"}, {"*DeepSeek-V2*", "other"}, {"*deepseek-coder*", "other"}, {"*DeepSeek-Coder*", "other"},
	{"*distill-qwen*", "other"}, {"*Distill-Qwen*", "other"}, {"*distill-llama*", "llama"}, {"*Distill-Llama*", "llama"},
	{"*", "other"},
}

func (c *compiler) families() (p Patterns[string]) {
	for _, f := range defaultFamilies {
		p.Add(f[0], f[1])
	}
	for _, pattern := range sortedKeys(c.spec.Families) {
		name := c.oneOf(Join("families", pattern), c.spec.Families[pattern], "other", families...)
		if pattern == defaultName {
			pattern = "*"
		}
		p.Add(pattern, name)
	}
	return p
}
