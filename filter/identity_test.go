// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// withWho is the one policy with other sources and trust.
func withWho(trust, who string) string {
	return strings.Replace(onePolicy, `"trust":["all"]`, `"trust":[`+trust+`],"who":`+who, 1)
}

// ask sends a chat with these headers and properties and ends it with 1000 tokens used.
func ask(p *filtertest.Process, body string, headers [][2]string, properties map[string]string) *filtertest.Exchange {
	if body == "" {
		body = `{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`
	}
	x := p.Worker(0).Open(filtertest.Request{
		Path: "/openai/v1/chat/completions", Body: []byte(body), Properties: properties,
		Headers: append([][2]string{{"content-type", "application/json"}}, headers...),
	})
	if x.Sent {
		x.Answer(200, `{"usage":{"prompt_tokens":8,"completion_tokens":992}}`)
	}
	return x
}

// Who names no tool and asks an API that is no LLM uses that API as a tool.
func TestToolOfAGenericProvider(t *testing.T) {
	policy := strings.Replace(onePolicy, `"limits":{`, `"limits":{"tool":{"tool":{"rpm":"4"},"other":{"rpm":"8"}},`, 1)
	policy = strings.Replace(policy, `"trust":["all"]`, `"trust":["10.0.0.1"]`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, row := range []struct {
			path, tool, from string
			admitted         int
		}{
			{"/tool/search", "", "10.0.0.2:1", 1}, {"/tool/search", "other", "10.0.0.2:1", 0}, {"/tool/search", "other", "10.0.0.1:1", 2},
			{"/openai/v1/files", "", "10.0.0.1:1", 9},
		} {
			n := 0
			for range 9 {
				r := filtertest.Request{Path: row.path, Method: "GET", Properties: map[string]string{"source.address": row.from}}
				if row.tool != "" {
					r.Headers = [][2]string{{"x-tool", row.tool}}
				}
				if x := p.Worker(0).Open(r); x.Sent {
					n++
				}
			}
			if n != row.admitted {
				t.Errorf("%+v: %d admitted", row, n)
			}
		}
	})
}

// Each source names the tenant; the first that is there wins.
func TestSources(t *testing.T) {
	const who = `{"tenant":["header x-tenant","body user","body metadata.user_id","claim sub","peer","trace-id","api-key","source-ip"]}`
	peer := map[string]string{"connection.uri_san_peer_certificate": "spiffe://mesh/a"}
	rows := []struct {
		name       string
		body       string
		headers    [][2]string
		properties map[string]string
	}{
		{"header", "", [][2]string{{"x-tenant", "t"}, {"authorization", "Bearer k"}}, peer},
		{"body", `{"model":"gpt-4o","user":"u","messages":[]}`, nil, peer},
		{"nested body", `{"model":"gpt-4o","metadata":{"user_id":"u2"},"messages":[]}`, nil, peer},
		{"claim", "", nil, map[string]string{"metadata.filter_metadata.envoy.filters.http.jwt_authn.jwt_payload.sub": "c"}},
		{"peer", "", nil, peer},
		{"trace", "", [][2]string{{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}, nil},
		{"key", "", [][2]string{{"authorization", "Bearer k"}}, nil},
		{"key of another kind", "", [][2]string{{"x-api-key", "k2"}}, nil},
		{"address", "", nil, map[string]string{"source.address": "10.1.2.3:4567"}},
		{"nothing", "", nil, nil},
	}
	both(t, 1, withWho(`"all"`, who), func(t *testing.T, p *filtertest.Process) {
		for i, row := range rows {
			ask(p, row.body, row.headers, row.properties)
			for j, other := range rows {
				x := ask(p, `{"model":"gpt-4o","max_tokens":99992,"messages":[{"role":"user","content":"hi"}],`+strings.TrimPrefix(probeBody(other.body), "{"), other.headers, other.properties)
				if denied := x.Reply != nil; denied != (j <= i) {
					t.Errorf("after %s, %s is denied: %v", row.name, other.name, denied)
				}
				if x.Reply == nil { // it was admitted and counts 1000 now; undo by time
					p.Sleep(120e9)
					for _, again := range rows[:i+1] {
						ask(p, again.body, again.headers, again.properties)
					}
				}
			}
		}
	})
}

// probeBody gives the members of a body that name somebody.
func probeBody(body string) string {
	switch {
	case strings.Contains(body, "metadata"):
		return `{"metadata":{"user_id":"u2"}}`
	case strings.Contains(body, "user"):
		return `{"user":"u"}`
	}
	return `{"x":1}`
}

// Whoever is not trusted cannot name itself: it shares the key unknown, or what the next source says.
func TestForgedHeaders(t *testing.T) {
	const trust = `"spiffe://mesh/agents/*","10.0.0.0/8","192.168.1.5"`
	good := []map[string]string{
		{"connection.uri_san_peer_certificate": "spiffe://mesh/agents/a"},
		{"source.address": "10.9.9.9:1234"},
		{"source.address": "192.168.1.5:1"},
		{"source.address": "[::ffff:10.1.1.1]:1"},
	}
	bad := []map[string]string{
		nil,
		{"connection.uri_san_peer_certificate": "spiffe://mesh/other"},
		{"connection.uri_san_peer_certificate": "spiffe://evil/agents/a"},
		{"source.address": "11.0.0.1:1"},
		{"source.address": "192.168.1.6:1"},
		{"source.address": "nonsense"},
	}
	both(t, 1, withWho(trust, `{"tenant":["header x-tenant"]}`), func(t *testing.T, p *filtertest.Process) {
		for i, props := range good {
			ask(p, "", [][2]string{{"x-tenant", fmt.Sprint("good", i)}}, props)
		}
		if got := used(t, p, "whoever"); got != 0 {
			t.Errorf("a trusted caller was not believed: unknown has used %d", got)
		}
		for i, props := range bad {
			ask(p, "", [][2]string{{"x-tenant", fmt.Sprint("bad", i)}}, props)
			if got := used(t, p, "whoever"); got != int64(i+1)*1000 {
				t.Errorf("caller %d was believed: unknown has used %d", i, got)
			}
		}
	})
}

// An untrusted caller may put itself into an environment with a smaller share, not out of one.
func TestUntrustedEnvironmentMayOnlyLower(t *testing.T) {
	policy := `{"apiVersion":"weir/v1",
		"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"tpm":"100000","burst":"100%"}}}},
		"who":{"environment":["header x-environment","default staging"],"tenant":["default t"]},
		"limits":{"environment":{"ci":{"share":"10%"},"staging":{"share":"50%"},"production":{"share":"100%"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for env, admits := range map[string]int{"ci": 9_000, "staging": 49_000, "production": 49_000, "": 49_000, "unheard-of": 49_000} {
			headers := [][2]string{{"content-type", "application/json"}, {"x-environment", env}}
			for _, n := range []int{admits, admits + 2000} {
				x := p.Worker(0).Open(filtertest.Request{Path: "/openai/v1/chat/completions", Headers: headers,
					Body: fmt.Appendf(nil, `{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, n)})
				if x.Sent != (n == admits) {
					t.Errorf("environment %q: %d tokens sent: %v", env, n, x.Sent)
				}
				if x.Sent {
					x.Answer(400, `{}`)
				} else if x.Reply.Headers.Get("x-weir-tier") != "environment" {
					t.Errorf("%v", x.Reply)
				}
			}
		}
	})
}

// An identity header that comes twice is refused: nobody knows which of the two the next hop would believe.
func TestDoubledIdentity(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := ask(p, "", [][2]string{{"x-tenant", "a"}, {"x-tenant", "b"}}, nil)
		if x.Reply == nil || x.Reply.Status != 400 || x.Reply.Headers.Get("x-weir-reason") != "bad_identity" {
			t.Errorf("%+v", x.Reply)
		}
		if x := ask(p, "", [][2]string{{"x-tenant", "a"}, {"x-other", "1"}, {"x-other", "2"}}, nil); x.Reply != nil {
			t.Errorf("a doubled header that names nobody was refused: %+v", x.Reply)
		}
	})
}

// Identity headers and whatever looks like weir's do not leave; credentials and all else do.
func TestStripping(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		x := p.Worker(0).Open(filtertest.Request{
			Path: "/openai/v1/chat/completions", Body: []byte(`{"model":"gpt-4o","messages":[]}`),
			Headers: [][2]string{{"x-tenant", "a"}, {"x-user", "u"}, {"x-tool", "t"}, {"x-environment", "ci"}, {"x-priority", "batch"},
				{"x-request-tree", "r"}, {"x-weir-decision", "admit"}, {"x-envoy-retry-on", "5xx"}, {"authorization", "Bearer secret"},
				{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, {"accept-encoding", "gzip, br"}, {"x-other", "kept"}},
		})
		for _, name := range []string{"x-tenant", "x-user", "x-tool", "x-environment", "x-priority", "x-request-tree", "x-weir-decision", "x-envoy-retry-on"} {
			if v := x.Upstream(name); v != "" {
				t.Errorf("%s: %s left", name, v)
			}
		}
		for name, want := range map[string]string{"authorization": "Bearer secret", "x-other": "kept", "accept-encoding": "identity"} {
			if v := x.Upstream(name); v != want {
				t.Errorf("%s is %q upstream, want %q", name, v, want)
			}
		}
		if x.Upstream("traceparent") == "" {
			t.Error("traceparent did not leave")
		}
		x.Respond(200, false, [2]string{"x-weir-reason", "forged"}, [2]string{"x-request-id", "1"})
		for _, h := range x.AnswerHeaders() {
			if h[0] == "x-weir-reason" {
				t.Error("a provider's x-weir header reached the caller")
			}
		}
		x.Close()
	})
}

// Users nest in tenants: the same name under two tenants is two users, and no choice of names makes one of them.
func TestKeysNest(t *testing.T) {
	policy := strings.Replace(onePolicy, `"limits":{`, `"limits":{"user":{"default":{"rpm":"1"}},`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, who := range [][2]string{{"a", "u"}, {"b", "u"}, {"a/u", "v"}, {"a", "u/v"}, {"a", ""}, {"a", "unknown2"}, {"", "u"}, {strings.Repeat("x", 200) + "1", "u"}, {strings.Repeat("x", 200) + "2", "u"}} {
			headers := [][2]string{{"x-tenant", who[0]}, {"x-user", who[1]}}
			if x := ask(p, "", headers, nil); x.Reply != nil {
				t.Errorf("%v shares a bucket with somebody: %+v", who, x.Reply)
			}
			if x := ask(p, "", headers, nil); x.Reply == nil || x.Reply.Headers.Get("x-weir-tier") != "user" {
				t.Errorf("%v is not limited: %+v", who, x.Reply)
			}
		}
	})
}

// One credential is one caller, however it is written and whatever stands beside it.
func TestOneCredential(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"http://a.test"},"anthropic":{"upstream":"http://b.test"}},
		"limits":{"tenant":{"default":{"rpm":"2","burst":"100%"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for name, row := range map[string]struct {
			path    string
			headers func(i int) [][2]string
		}{
			"case": {"/openai/v1/chat/completions", func(i int) [][2]string {
				return [][2]string{{"authorization", []string{"Bearer sk", "bearer sk", "BEARER  sk", " Bearer sk "}[i%4]}}
			}},
			"another's beside it": {"/openai/v1/chat/completions", func(i int) [][2]string {
				return [][2]string{{"x-api-key", fmt.Sprint(i)}, {"authorization", "Bearer sk"}}
			}},
			"another's before it": {"/anthropic/v1/messages", func(i int) [][2]string {
				return [][2]string{{"authorization", fmt.Sprint("Basic ", i)}, {"x-api-key", "sk"}}
			}},
			"twice": {"/openai/v1/chat/completions", func(i int) [][2]string {
				return [][2]string{{"authorization", fmt.Sprint("Bearer ", i)}, {"authorization", "Bearer sk"}, {"x-api-key", fmt.Sprint(i)}}
			}},
		} {
			n := 0
			for i := range 20 {
				if p.Worker(0).Open(filtertest.Request{Path: row.path, Headers: row.headers(i), Body: []byte(`{"model":"m","max_tokens":1}`)}).Sent {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%s: %d sent, rpm is 2", name, n)
			}
			p.Sleep(2 * time.Minute)
		}
	})
}

// Who is not trusted and says that it is in a smaller environment uses that one's share and its own: not each in turn.
func TestClaimedEnvironmentsAddUpToOne(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["spiffe://x/*"],"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rpm":"100","burst":"100%"}}}},
		"limits":{"environment":{"default":{"share":"40%"},"ci":{"share":"30%"},"staging":{"share":"20%"},"trial":{"share":"10%","mode":"shadow"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		n := map[string]int{}
		for _, env := range []string{"ci", "staging", "trial", ""} {
			for range 200 {
				r := filtertest.Request{Path: "/openai/v1/chat/completions", Body: []byte(`{"model":"gpt-4o","max_tokens":1}`)}
				if env != "" {
					r.Headers = [][2]string{{"x-environment", env}}
				}
				if p.Worker(0).Open(r).Sent {
					n[env]++
				}
			}
		}
		if n["ci"] != 30 || n["staging"] != 10 || n["trial"] != 0 || n[""] != 0 {
			t.Errorf("%v: together more than the 40 of who says nothing, or more than one's share", n)
		}
	})
}

// A member that names the user is found wherever it stands.
func TestUserBehindManyMembers(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://openai.test"}},"limits":{"user":{"default":{"rpm":"2","burst":"100%"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		n := 0
		for i := range 10 {
			body := strings.Repeat(`"p":1,`, 40)
			if p.Worker(0).Open(request("/openai/v1/chat/completions", "a", fmt.Sprintf(`{"model":"m",%s"user":"u%d"}`, body, i))).Sent {
				n++
			}
		}
		if n != 10 {
			t.Errorf("%d of 10 users were told apart", n)
		}
	})
}
