// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/hex"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// An asker finds out who sent a request. It asks Envoy for no more than the policy's sources need.
type asker struct {
	host   Host
	policy *policy.Policy
	stream *Stream
	member func(path string) string // of the body; nil if it was not read

	missed  bool // the body was asked for a member that it has not
	known   bool // whether trusted has been found out
	trusted bool
}

// peerName is the property that has the name in the caller's certificate.
const peerName = "connection\x00uri_san_peer_certificate"

// identityHeaders lists the headers that name tiers.
func identityHeaders(w *policy.WhoSpec) (names []string) {
	for _, sources := range [][]policy.Source{w.Environment, w.Tenant, w.User, w.Tree, w.Tool, w.Class} {
		for _, s := range sources {
			if s.Kind == policy.FromHeader && !slices.Contains(names, s.Arg) {
				names = append(names, s.Arg)
			}
		}
	}
	return names
}

// caller identifies the caller on all tiers that make a difference.
func (a *asker) caller() (c policy.Caller) {
	w, uses := &a.policy.Who, a.policy.Uses
	if uses(policy.TierEnvironment) {
		c.Environment, c.Base = a.environment(w.Environment)
	}
	if uses(policy.TierTenant) {
		c.Tenant, c.Vouched = a.first(w.Tenant)
	}
	if uses(policy.TierUser) {
		c.User, _ = a.first(w.User)
	}
	if uses(policy.TierTree) {
		if c.Tree, _ = a.first(w.Tree); c.Tree == policy.Unknown {
			c.Tree = "" // who names none belongs to none
		}
	}
	if uses(policy.TierTool) {
		c.Tool = a.tool(w.Tool)
	}
	return c
}

// named is caller with all names of who asks, whether the policy's limits tell callers apart by them or not.
func (a *asker) named() policy.Caller {
	c, w := a.caller(), &a.policy.Who
	c.Tenant, c.Vouched = a.first(w.Tenant)
	c.User, _ = a.first(w.User)
	if c.Tree, _ = a.first(w.Tree); c.Tree == policy.Unknown {
		c.Tree = ""
	}
	return c
}

// owner is who may open and join a fan-out.
func (a *asker) owner() policy.FanoutOwner {
	c := a.named()
	return a.policy.Owner(&c)
}

// tool is first, but who names none and asks an API that is no LLM uses that API as a tool.
func (a *asker) tool(sources []policy.Source) string {
	name, _ := a.first(sources)
	if p := a.stream.provider; name == policy.Unknown && p != nil && a.stream.dialect == dialect.Generic {
		return p.Name
	}
	return name
}

// classOf gives the class of the request: what its path, its caller or the policy's default says.
func (a *asker) classOf(path string) (int, policy.Class) {
	named, base := "", ""
	for _, s := range a.policy.Who.Class {
		if s.Kind == policy.FromDefault {
			base = s.Arg
		} else if named == "" {
			named = a.read(s)
		}
	}
	path, _, _ = strings.Cut(path, "?")
	return a.policy.ClassOf(path, named, base, named != "" && a.believed())
}

// first gives the key from the first source that has one and is believed, and whether the source vouches for it: it is none
// that callers can make up at will. Who cannot be identified shares the key unknown.
func (a *asker) first(sources []policy.Source) (name string, vouched bool) {
	for _, s := range sources {
		if s.NeedsTrust() && !a.believed() {
			continue
		}
		if name := a.read(s); name != "" {
			return a.policy.Hasher.Shorten(name), s.Vouches()
		}
	}
	return policy.Unknown, true
}

// environment is first, but a caller that is not trusted may choose an environment with a smaller share than it would
// have without: who says that it is CI is believed. It stays in the other, too, else it could use up all that are smaller.
func (a *asker) environment(sources []policy.Source) (name, base string) {
	name, _ = a.first(sources)
	if a.believed() {
		return name, ""
	}
	for _, s := range sources {
		if s.NeedsTrust() {
			if claimed := a.read(s); claimed != "" && a.policy.Lowers(name, claimed) {
				return claimed, name
			}
		}
	}
	return name, ""
}

func (a *asker) read(s policy.Source) string {
	switch s.Kind {
	case policy.FromHeader:
		return a.stream.identityHeader(s.Arg)
	case policy.FromBody:
		if a.member != nil {
			name := a.member(s.Arg)
			a.missed = a.missed || name == ""
			return name
		}
	case policy.FromAPIKey:
		return a.apiKey()
	case policy.FromPeer:
		return strings.Clone(a.host.Property(peerName))
	case policy.FromClaim:
		return a.claim(s.Arg)
	case policy.FromSourceIP:
		if addr, ok := a.address(); ok {
			return addr.String()
		}
	case policy.FromBaggage:
		return baggage(a.stream.headers, s.Arg)
	case policy.FromTraceID:
		return traceID(a.stream.header("traceparent"))
	case policy.FromDefault:
		return s.Arg
	}
	return ""
}

// apiKey is a keyed hash of the credential, so that the credential itself is nowhere kept or shown. The header that the
// provider reads comes first: else who adds another one would be another caller each time. One that comes twice is none.
func (a *asker) apiKey() string {
	for _, name := range a.stream.dialect.CredentialHeaders() {
		value, n := a.stream.headerOf(name)
		if n > 1 {
			return ""
		}
		if key := credential(value); key != "" {
			return a.keyed(key)
		}
	}
	if key := parameter(a.stream.header(":path"), a.stream.dialect.CredentialParameter()); key != "" {
		return a.keyed(key)
	}
	return ""
}

func (a *asker) keyed(key string) string {
	sum := hmacSHA256([]byte(a.policy.Secret), []byte(key))
	return "key-" + hex.EncodeToString(sum[:16])
}

// parameter is a query parameter; "" if it is not there, or there twice.
func parameter(path, name string) (value string) {
	if name == "" {
		return ""
	}
	_, query, _ := strings.Cut(path, "?")
	n := 0
	for pair := range strings.SplitSeq(query, "&") {
		k, v, _ := strings.Cut(pair, "=")
		k, err := url.QueryUnescape(k)
		v, err2 := url.QueryUnescape(v)
		if err != nil || err2 != nil || strings.Contains(pair, ";") {
			return ""
		}
		if k == name {
			value, n = v, n+1
		}
	}
	if n != 1 {
		return ""
	}
	return value
}

// credential drops the scheme of a bearer token, which may be in any case. Of a request that is signed in AWS's way the
// access key is the credential: the rest is another one each time.
func credential(value string) string {
	const bearer, signed = "bearer ", "AWS4-"
	value = strings.TrimSpace(value)
	if strings.HasPrefix(value, signed) {
		_, rest, _ := strings.Cut(value, "Credential=")
		key, _, _ := strings.Cut(rest, "/")
		return key
	}
	if len(value) >= len(bearer) && strings.EqualFold(value[:len(bearer)], bearer) {
		value = value[len(bearer):]
	}
	return strings.TrimSpace(value)
}

// claim reads a claim of the token that Envoy's jwt_authn filter has checked, from payload_in_metadata: jwt_payload.
func (a *asker) claim(path string) string {
	return strings.Clone(a.host.Property("metadata\x00filter_metadata\x00envoy.filters.http.jwt_authn\x00jwt_payload\x00" + strings.ReplaceAll(path, ".", "\x00")))
}

// traceID is the second field of a W3C traceparent.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" {
		return ""
	}
	return parts[1]
}

// address is where the caller's connection comes from.
func (a *asker) address() (netip.Addr, bool) {
	ap, err := netip.ParseAddrPort(a.host.Property("source\x00address"))
	return ap.Addr().Unmap(), err == nil
}

// believed says whether the caller's identity headers count.
func (a *asker) believed() bool {
	if !a.known {
		a.known, a.trusted = true, a.askTrust()
	}
	return a.trusted
}

func (a *asker) askTrust() bool {
	t := &a.policy.Trust
	if t.All {
		return true
	}
	if t.HasPeers() {
		if uri := a.host.Property(peerName); uri != "" && t.Peer(uri) {
			return true
		}
	}
	if len(t.Nets) == 0 {
		return false
	}
	addr, ok := a.address()
	return ok && t.Addr(addr)
}
