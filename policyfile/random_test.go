// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/policy"
)

// Any policy, written in any style, is read as what it is.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := randomSpec(t)
		text := writeYAML(t, want)
		r, err := Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(r.Spec, want) {
			t.Fatalf("got  %+v\nwant %+v\n%s", r.Spec, want, text)
		}
		if back, err := policy.Decode(r.JSON); err != nil || !reflect.DeepEqual(back, want) {
			t.Fatalf("JSON: %v, %s\nwant %+v", err, r.JSON, want)
		}
	})
}

// names are keys that YAML, JSON or a path might take for something else.
var names = []string{
	"default", "*", "gpt-*", "gpt-4.1", "a b", "null", "~", "true", "off", "42", "007", "1.50", `"q"`, "it's", "ü", ": x", "# y", "- z", "a: b",
	"a #b", "&a", "!a", "%a", "@a", "{a", "[a]", "?", "<<", "a[0]", "2026-01-01", "x,y", "x-",
}

// words are texts that a field may have, by the key it has.
var words = map[string][]string{
	"on_error": {"", "deny", "allow"},
	"on_limit": {"", "deny", "queue"},
	"order":    {"", "priority", "weighted"},

	"on_retries_spent": {"", "deny"},

	"include_usage": {"", "keep", "add"},
	"scope":         {"", "node", "fleet", "central"},
	"reserve":       {"", "declared", "learned"},
	"cap":           {"", "none", "default"},
	"uncertain":     {"", "refund", "keep"},
	"admit":         {"", "off", "debug", "info", "warn"},
	"deny":          {"", "off", "debug", "info", "warn"},
	"dialect":       {"openai", "anthropic", "generic"},
	"upstream":      {"", "https://api.openai.com", "http://weather.internal:8080/v1"},
	"trust":         {"all", "10.0.0.0/8", "fd00::/8", "::1", "spiffe://mesh/agents/*"},
	"families":      {"o200k", "cl100k", "claude", "claude-4.7", "claude-2", "gemini", "llama", "qwen", "deepseek", "mistral", "other"},
}

// randomSpec makes a policy that is correct.
func randomSpec(t *rapid.T) *policy.Spec {
	s := new(policy.Spec)
	fill(t, reflect.ValueOf(s).Elem(), "")
	s.APIVersion, s.Fleet.Shares, s.Fleet.Reports = policy.APIVersion, false, false
	if s.Providers == nil {
		s.Providers = map[string]policy.ProviderSpec{"openai": {}}
	}
	for name, p := range s.Providers {
		p.Cluster = map[bool]string{true: "c", false: ""}[p.Upstream == ""]
		p.Prefix = fmt.Sprintf("/p%d", len(name)*100+strings.Index(strings.Join(names, " "), name))
		a := &p.Adapt
		a.Decrease, a.Climb = min(a.Decrease, 0.9), map[bool]string{true: "fast"}[a.Climb != ""]
		a.Floor = min(a.Floor, cmp.Or(a.Ceiling, policy.Whole))
		for _, l := range p.Models {
			if l.Probe {
				l.Scope, p.Adapt.Off = policy.FleetWide.String(), false
			}
		}
		s.Providers[name] = p
	}
	for _, d := range s.Spill {
		for name := range s.Providers {
			d.Provider = name
		}
	}
	for _, tree := range s.Limits.Tree {
		tree.Calls, tree.TTL, tree.Floor = max(tree.Calls, 1), policy.Duration(time.Hour), min(tree.Floor, policy.Whole/2)
	}
	for name, c := range s.Classes {
		c.Share, c.Wait = min(c.Share, policy.Whole/10), min(c.Wait, policy.Duration(4*time.Minute))
		if c.Weight = min(c.Weight, 16); s.Queue.Order == "weighted" {
			c.Aging = 0
		} else {
			c.Weight = 0
		}
		s.Classes[name] = c
	}
	s.Queue.Entries = min(s.Queue.Entries, 1<<16)
	f := &s.Fanout
	f.Max, f.PerTree, f.TTL = min(f.Max, 1024), min(f.PerTree, policy.MaxPerTree), min(f.TTL, policy.Duration(10*time.Minute))
	if f.TTL < policy.Duration(time.Second) {
		f.TTL = 0
	}
	for i := range s.Routes {
		s.Routes[i].Class, s.Routes[i].Match.Path = "", "/v1/embeddings"
	}
	for _, e := range s.Limits.Environment {
		e.Share, e.Probe = max(e.Share, 1), false
	}
	for _, limits := range []map[string]*policy.LimitSpec{s.Limits.Tenant, s.Limits.User, s.Limits.Tool} {
		for _, l := range limits {
			l.Probe = false
		}
	}
	if j := s.Fleet.Jitter; j != nil {
		*j = min(*j, policy.Duration(10*time.Second))
	}
	bounded := func(d *policy.Duration, least, most time.Duration) {
		if *d != 0 {
			*d = min(max(*d, policy.Duration(least)), policy.Duration(most))
		}
	}
	bounded(&s.Fleet.Lease, time.Second, time.Hour)
	bounded(&s.Fleet.Forget, time.Minute, 24*time.Hour)
	s.Fleet.Floor, s.Fleet.MaxEnvoys = min(s.Fleet.Floor, policy.Whole/2), min(s.Fleet.MaxEnvoys, 100_000)
	if s.Body.Parse != nil {
		*s.Body.Parse = policy.Size(rapid.Int64Range(1<<10, 64<<20).Draw(t, "parse"))
	}
	if s.Body.Hold != nil {
		least := int64(1 << 20)
		if s.Body.Parse != nil {
			least = int64(*s.Body.Parse)
		}
		*s.Body.Hold = policy.Size(rapid.Int64Range(least, 256<<20).Draw(t, "hold"))
	}
	for _, n := range []*policy.Count{&s.Slots.Tenant, &s.Slots.User, &s.Slots.Tree, &s.Slots.Tool} {
		if *n != 0 {
			*n = policy.Count(rapid.Int64Range(policy.MinSlots, 1<<20).Draw(t, "slots"))
		}
	}
	return s
}

// fill sets v to something that its type and key allow.
func fill(t *rapid.T, v reflect.Value, key string) {
	if fillText(t, v.Addr().Interface()) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if w, ok := words[key]; ok {
			v.SetString(rapid.SampledFrom(w).Draw(t, key))
			return
		}
		v.SetString(rapid.SampledFrom(names).Draw(t, key))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, key))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(1e-6, 1e6).Draw(t, key))
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		fill(t, p.Elem(), key)
		v.Set(p)
	case reflect.Slice:
		for range rapid.IntRange(0, 3).Draw(t, key) {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(t, e, key)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		fillMap(t, v, key)
	case reflect.Struct:
		fillStruct(t, v)
	}
}

func fillMap(t *rapid.T, v reflect.Value, key string) {
	for range rapid.IntRange(0, 3).Draw(t, key) {
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		e := reflect.New(v.Type().Elem()).Elem()
		fill(t, e, key)
		v.SetMapIndex(reflect.ValueOf(rapid.SampledFrom(names).Draw(t, "name")), e)
	}
}

func fillStruct(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if key == "" || key == "dialect" || key == "match" || rapid.IntRange(0, 2).Draw(t, key) == 0 {
			fill(t, v.Field(i), key)
		}
	}
	if l, ok := v.Addr().Interface().(*policy.LimitSpec); ok && l.RPM == nil { // a limit must limit something
		l.RPM = new(policy.Count(1))
	}
}

// fillText fills what is written as a text of a form of its own.
func fillText(t *rapid.T, p any) bool {
	share := func() policy.Share { return policy.Share(rapid.Int64Range(0, int64(policy.Whole)).Draw(t, "share")) }
	duration := func(least, most time.Duration) policy.Duration {
		return policy.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, "duration"))
	}
	switch p := p.(type) {
	case *policy.Count:
		*p = policy.Count(rapid.Int64Range(1, 1_000_000_000).Draw(t, "count"))
	case *policy.Size:
		*p = policy.Size(rapid.Int64Range(0, 1<<40).Draw(t, "size"))
	case *policy.Duration:
		*p = duration(0, 87600*time.Hour)
	case *policy.Share:
		*p = share()
	case *policy.Burst:
		p.Share = max(share(), 1)
	case *policy.Growth:
		*p = policy.Growth{Share: share(), Per: duration(1, time.Hour)}
	case *policy.Mode:
		*p = rapid.SampledFrom([]policy.Mode{policy.Enforce, policy.Shadow, policy.Off}).Draw(t, "mode")
	case *policy.Window:
		if p.Kind = rapid.SampledFrom([]policy.WindowKind{policy.Sliding, policy.Continuous, policy.Fixed, policy.Subwindows}).Draw(t, "kind"); p.Kind == policy.Sliding {
			p.Length = rapid.SampledFrom([]policy.Duration{0, duration(time.Millisecond, policy.MaxWindow)}).Draw(t, "length")
		}
	case *policy.Reset:
		*p = rapid.SampledFrom([]policy.Reset{{Zone: "UTC"}, {Zone: "UTC", Anchor: 4*time.Hour + 30*time.Minute}}).Draw(t, "reset")
	case *policy.DegradeSpec:
		*p = rapid.SampledFrom([]policy.DegradeSpec{
			{Model: "m: 1"}, {MaxTokens: 512}, {Model: "~", MaxTokens: 1}, {Static: &policy.StaticSpec{API: "chat", Reply: `{"a":"b\n# c"}`}},
		}).Draw(t, "degrade")
	case *policy.SpillSpec:
		p.Model = rapid.SampledFrom([]string{"", "m", "true"}).Draw(t, "model")
	case *policy.Unmetered:
		*p = rapid.SampledFrom([]policy.Unmetered{nil, {"*"}, {"/v1/realtime", "/v2/*"}}).Draw(t, "unmetered")
	case *[]policy.Source:
		*p = sources(t)
	default:
		return false
	}
	return true
}

func sources(t *rapid.T) (list []policy.Source) {
	for range rapid.IntRange(0, 3).Draw(t, "sources") {
		list = append(list, rapid.SampledFrom([]policy.Source{
			{Kind: policy.FromHeader, Arg: "x-tenant"}, {Kind: policy.FromBody, Arg: "metadata.user_id"}, {Kind: policy.FromAPIKey},
			{Kind: policy.FromPeer}, {Kind: policy.FromClaim, Arg: "sub"}, {Kind: policy.FromSourceIP}, {Kind: policy.FromTraceID}, {Kind: policy.FromBaggage, Arg: "tree"},
		}).Draw(t, "source"))
	}
	if name := rapid.SampledFrom([]string{"", "null", "ü"}).Draw(t, "default"); name != "" {
		list = append(list, policy.Source{Kind: policy.FromDefault, Arg: cmp.Or(name, "x")})
	}
	return list
}
