// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// version is a path that ends as those of LLM APIs begin.
var version = regexp.MustCompile(`/v[0-9][a-z0-9]*/?$`)

// private are ends of names that lead to no public machine.
var private = []string{".internal", ".local", ".localhost", ".svc", ".lan", ".home", ".test"}

// upstream notes what is odd about the address of an LLM provider.
func (r *reader) upstream(path, dialect, address string) {
	u, err := url.Parse(address)
	if err != nil || address == "" || dialect == "generic" {
		return
	}
	if v := strings.TrimRight(version.FindString(u.Path), "/"); v != "" {
		r.notice(path, "what callers ask for comes after "+v+": a base URL of theirs that ends in "+v+", too, leads to "+v+v)
	}
	if u.Scheme == "http" && public(u.Hostname()) {
		r.notice(path, "keys and prompts go there in clear text; https encrypts them")
	}
}

func public(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return !a.IsLoopback() && !a.IsPrivate() && !a.IsLinkLocalUnicast()
	}
	return strings.Contains(host, ".") && !slices.ContainsFunc(private, func(end string) bool { return strings.HasSuffix(host, end) })
}

// nobody notes limits of names that no caller can have, as nobody is trusted to say its own.
func (r *reader) nobody(s *policy.Spec, w *policy.WhoSpec) {
	for _, t := range []struct {
		path    string
		limits  map[string]*policy.LimitSpec
		sources []policy.Source
	}{
		{"limits.tenant", s.Limits.Tenant, w.Tenant}, {"limits.user", s.Limits.User, w.User}, {"limits.tool", s.Limits.Tool, w.Tool},
	} {
		var names []string
		for name := range t.limits {
			_, isProvider := s.Providers[name]
			provided := t.path == "limits.tool" && isProvider
			if name != "default" && !provided && !slices.ContainsFunc(t.sources, func(s policy.Source) bool { return gives(s, name) }) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			r.notice(t.path, "never applies to "+strings.Join(names, ", ")+": headers and bodies name callers only where trust lists them")
		}
	}
}

// gives says whether a source can give a name, or one such as acme/alice, though nobody is trusted.
func gives(s policy.Source, name string) bool {
	last := name[strings.LastIndex(name, "/")+1:]
	switch s.Kind {
	case policy.FromClaim, policy.FromTraceID:
		return true
	case policy.FromPeer:
		return strings.Contains(name, "://")
	case policy.FromAPIKey:
		return strings.HasPrefix(last, "key-")
	case policy.FromSourceIP:
		_, err := netip.ParseAddr(last)
		return err == nil
	case policy.FromDefault:
		return last == s.Arg
	}
	return false
}

// elsewhere notes what may be missed about requests that are degraded or spilled.
func (r *reader) elsewhere(s *policy.Spec, p *policy.Policy) {
	for model, d := range s.Degrade {
		if at := shared(p, model, d.Model); at != "" && d.Model != "" && d.MaxTokens == 0 {
			r.notice(policy.Join("degrade", model), "both have the limits of "+at+": what these refuse to one they refuse to the other")
		}
	}
	for model, d := range s.Spill {
		r.notice(policy.Join("spill", model), "goes to "+d.Provider+" as the caller sent it, its credential included")
	}
}

// shared names the entry whose limits two models share, if there is no provider where they have limits apart.
func shared(p *policy.Policy, a, b string) (at string) {
	for _, pr := range p.Providers {
		of, limited := pr.Models.Lookup(a)
		other, _ := pr.Models.Lookup(b)
		switch {
		case limited && of != other:
			return ""
		case limited && at == "":
			at = policy.Join(policy.Join(policy.Join("providers", pr.Name), "models"), of.Pattern)
		}
	}
	return at
}
