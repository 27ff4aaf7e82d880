// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy"
)

func input() Input {
	return Input{
		Spec: &policy.Spec{APIVersion: policy.APIVersion, Providers: map[string]policy.ProviderSpec{
			"openai": {Upstream: "https://api.openai.com"},
			"tools":  {Upstream: "http://tools.internal", Dialect: "generic"},
		}},
		Listen: "127.0.0.1:0",
		Wasm:   "/weir-0123abcd.wasm",
	}
}

func TestVersionsAreOfTheContent(t *testing.T) {
	first := versions(t, input())
	for range 50 { // maps within messages could come in another order
		if again := versions(t, input()); !maps.Equal(first, again) {
			t.Fatalf("other versions for the same input: %v, %v", first, again)
		}
	}
	for name, c := range map[string]struct {
		change func(*Input)
		types  string
	}{
		"limits":   {func(in *Input) { in.Spec.Mode = policy.Shadow }, "filter"},
		"body cap": {func(in *Input) { in.BodyCap = 4 << 20 }, "route"},
		"filter":   {func(in *Input) { in.Wasm = "/weir-ffffffff.wasm" }, "filter cluster"},
		"upstream": {func(in *Input) { in.Upstream = "127.0.0.1:1" }, "cluster route"},
	} {
		in := input()
		c.change(&in)
		var changed []string
		for typ, v := range versions(t, in) {
			if first[typ] != v {
				changed = append(changed, typ)
			}
		}
		for _, want := range strings.Fields(c.types) {
			if !strings.Contains(strings.ToLower(strings.Join(changed, " ")), typeName[want]) {
				t.Errorf("%s: changed %v, want %s", name, changed, want)
			}
		}
		if len(changed) != len(strings.Fields(c.types)) {
			t.Errorf("%s: changed %v, want %s and no other: above all no listener, which would be drained", name, changed, c.types)
		}
	}
}

var typeName = map[string]string{"filter": "typedextensionconfig", "route": "routeconfiguration", "cluster": "v3.cluster"}

func versions(t *testing.T, in Input) map[string]string {
	t.Helper()
	s, err := Resources(in)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Versions()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestErrors(t *testing.T) {
	for want, change := range map[string]func(*Input){
		"needs a policy":           func(in *Input) { in.Spec = nil },
		"path of the filter":       func(in *Input) { in.Wasm = "" },
		`unknown version "v9"`:     func(in *Input) { in.Spec.APIVersion = "v9" },
		`"weir.internal" is no IP`: func(in *Input) { in.Listen = "weir.internal:80" },
		"write host:port":          func(in *Input) { in.Listen = "10000" },
		`invalid port ":0x1"`:      func(in *Input) { in.Upstream = "127.0.0.1:0x1" },
	} {
		in := input()
		change(&in)
		if _, err := Resources(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestUpstream(t *testing.T) {
	for _, c := range []struct{ address, instead, want string }{
		{"https://api.openai.com", "", "api.openai.com:443 api.openai.com  tls"},
		{"https://api.openai.com:443/v1/", "", "api.openai.com:443 api.openai.com /v1 tls"},
		{"http://tools:8080/a%2Fb//", "", "tools:8080 tools:8080 /a%2Fb "},
		{"https://[2001:db8::1]/x", "", "[2001:db8::1]:443 [2001:db8::1] /x tls"},
		{"https://[2001:db8::1]:8443", "", "[2001:db8::1]:8443 [2001:db8::1]:8443  tls"},
		{"https://api.openai.com/v1", "127.0.0.1:9000", "127.0.0.1:9000 127.0.0.1:9000 /v1 "},
		{"", "[::1]:9000", "[::1]:9000 [::1]:9000  "},
	} {
		u, err := parseUpstream(c.address, c.instead)
		if err != nil {
			t.Errorf("%s: %v", c.address, err)
			continue
		}
		got := strings.Join([]string{u.address(), u.authority(), u.base, map[bool]string{true: "tls"}[u.tls]}, " ")
		if got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.address, c.instead, got, c.want)
		}
	}
}

func TestHiddenDots(t *testing.T) {
	r := regexp.MustCompile(`^(?:` + hiddenDots + `)$`)
	for path, want := range map[string]bool{
		"/v1/files/..%2Fchat/completions":    true,
		"/v1/files%2f../chat/completions":    true,
		"/v1/files%2F%2e%2E%2Fchat":          true,
		"/v1/files%2F..":                     true,
		"/v1/files%5c..%5Cchat":              true,
		"/v1/files/.%2Fchat":                 true,
		"/model/arn%3Aaws%2Fus.anthropic%2F": false,
		"/model/a%2F.b/invoke":               false,
		"/model/a%2F...":                     false,
		"/model/a%2F..b":                     false,
		"/model/a..%2Fb":                     false,
		"/v1/chat/completions":               false,
	} {
		if got := r.MatchString(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestPolicyGoesInAsItIs(t *testing.T) {
	in := input()
	in.Policy = json.RawMessage(`{"as":"it is"}`)
	s, err := Resources(in)
	if err != nil {
		t.Fatal(err)
	}
	if s.Policy != Version(in.Policy) || !strings.Contains(string(s.Extensions[0].TypedConfig.Value), `{"as":"it is"}`) {
		t.Errorf("got %v", s.Extensions[0])
	}
}
