// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/envoy/envoytest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
)

const (
	nodeToken  = "node-node-node-node-node-node-node"
	readToken  = "read-read-read-read-read-read-read"
	adminToken = "admin-admin-admin-admin-admin-admin"
)

func guardOf(t *testing.T, f access.Files) *access.Guard {
	t.Helper()
	f.Tokens = filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(f.Tokens, []byte("node n "+nodeToken+"\nread r "+readToken+"\nadmin a "+adminToken), 0o600))
	g, err := access.New(f, nil)
	must(t, err)
	return g
}

// ask sends a request with a token, and more headers as names and values in turn.
func (p *plane) ask(method, path, token string, body []byte, headers ...string) (int, []byte) {
	p.t.Helper()
	r, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	must(p.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	must(p.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return resp.StatusCode, b
}

func TestWhoMayWhat(t *testing.T) {
	p := run(t, good, func(c *Config) { c.Access = guardOf(t, access.Files{}) })
	for _, c := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", "/livez", "", 200}, {"GET", "/readyz", "", 200},
		{"GET", "/", "", 401}, {"GET", "/metrics", "", 401}, {"GET", "/api/status", "", 401}, {"GET", "/", "wrong", 401},
		{"GET", "/", readToken, 200}, {"GET", "/metrics", readToken, 200}, {"GET", "/", adminToken, 200}, {"GET", "/", nodeToken, 403},
		{"POST", "/v1/central/take", "", 401}, {"POST", "/v1/central/take", readToken, 403}, {"POST", "/v1/central/take", adminToken, 403},
		{"POST", "/v1/central/take", nodeToken, 501}, // there is no store
		{"POST", "/livez", "", 401}, {"POST", "/anything", readToken, 403}, {"POST", "/anything", nodeToken, 403}, {"POST", "/anything", adminToken, 404},
		{"DELETE", "/", readToken, 403}, {"PUT", "/api/status", adminToken, 405},
	} {
		if got, body := p.ask(c.method, c.path, c.token, nil); got != c.want && !(c.path == "/readyz" && got == 503) {
			t.Errorf("%s %s with %q: got %d %s, want %d", c.method, c.path, c.token, got, body, c.want)
		}
	}
	open := run(t, good, nil)
	if got, _ := open.ask("POST", "/anything", "", nil); got != 403 {
		t.Errorf("where nobody is asked, something can be changed: %d", got)
	}
}

func TestOtherSitesChangeNothing(t *testing.T) {
	p := run(t, good, func(c *Config) { c.Access = guardOf(t, access.Files{}) })
	for name, c := range map[string]struct {
		path    string
		want    int
		headers []string
	}{
		"another site":       {"/anything", 403, []string{"Origin", "http://evil.test"}},
		"no origin at all":   {"/anything", 403, []string{"Origin", "null"}},
		"this page":          {"/anything", 404, []string{"Origin", p.url}},
		"DNS rebinding":      {"/anything", 421, []string{"Host", "evil.test", "Origin", "http://evil.test"}},
		"a page at Envoys'":  {"/v1/central/take", 403, []string{"Origin", p.url}},
		"a form at Envoys'":  {"/v1/central/take", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		"an Envoy's cluster": {"/v1/central/take", 403, []string{"Host", "weir_control"}}, // for the token is an admin's
	} {
		if got, body := p.ask("POST", c.path, adminToken, nil, c.headers...); got != c.want {
			t.Errorf("%s: got %d %s, want %d", name, got, body, c.want)
		}
	}
}

// Over TLS, with a name of the certificate or of this machine.
func TestPageOverTLS(t *testing.T) {
	ca, dir := envoytest.NewCA(t), t.TempDir()
	ca.Issue(dir, "weir.test", "127.0.0.1")
	p := run(t, good, func(c *Config) { c.Access = guardOf(t, access.Files{Cert: dir + "/tls.crt", Key: dir + "/tls.key"}) })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM)
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	defer func() { http.DefaultTransport.(*http.Transport).TLSClientConfig = nil }()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	p.url = strings.Replace(p.url, "http://", "https://", 1)
	for host, want := range map[string]int{"weir.test": 200, "127.0.0.1": 200, "evil.test": 421} {
		if got, _ := p.ask("GET", "/", readToken, nil, "Host", host); got != want {
			t.Errorf("%s: got %d, want %d", host, got, want)
		}
	}
}

func TestRequireSafe(t *testing.T) {
	ca, dir := envoytest.NewCA(t), t.TempDir()
	ca.Issue(dir, "weir.test")
	pair := access.Files{Cert: dir + "/tls.crt", Key: dir + "/tls.key"}
	plain, err := access.New(pair, nil)
	must(t, err)
	for name, c := range map[string]struct {
		g    *access.Guard
		safe bool
	}{
		"nothing": {nil, false}, "TLS alone": {plain, false}, "tokens alone": {guardOf(t, access.Files{}), false}, "both": {guardOf(t, pair), true},
	} {
		if err := RequireSafe("0.0.0.0:1", c.g); (err == nil) != c.safe {
			t.Errorf("%s: got %v", name, err)
		}
		if err := RequireSafe("127.0.0.1:1", c.g); err != nil {
			t.Errorf("%s on loopback: got %v", name, err)
		}
	}
}

const centralPolicy = `apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://127.0.0.1:1", models: {"gpt-4o": {tpm: 1000}}}
limits:
  tenant: {default: {rpd: 3, burst: 100%}}
  user: {default: {in_flight: 1}}
`

func (p *plane) take(id byte, tenant string, tokens int64) (int, central.Answer) {
	m := central.Take{
		ID: central.ID{id}, Node: "n", Lease: time.Minute, Provider: "openai", Model: "gpt-4o",
		Tiers:  central.Tiers(0).With(policy.TierProvider).With(policy.TierTenant),
		Caller: policy.Caller{Tenant: tenant, User: "secret-user"}, Cost: policy.Cost{Requests: 1, Input: tokens},
	}
	code, b := p.ask("POST", central.TakePath, nodeToken, m.Append(nil))
	var a central.Answer
	if code == 200 {
		must(p.t, a.Decode(b))
	}
	return code, a
}

func (p *plane) settle(id byte, node string, tokens int64) int {
	m := central.Settles{Node: node, Calls: []central.Settle{{ID: central.ID{id}, Cost: policy.Cost{Requests: 1, Input: tokens}}}}
	code, _ := p.ask("POST", central.SettlePath, nodeToken, m.Append(nil))
	return code
}

func TestCentral(t *testing.T) {
	s, err := store.Open("bolt:" + filepath.Join(t.TempDir(), "store"))
	must(t, err)
	p := run(t, centralPolicy, func(c *Config) { c.Store, c.Access = s, guardOf(t, access.Files{}) })
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if code, _ := p.ask("GET", "/readyz", "", nil); code == 200 {
			break
		} else if time.Now().After(end) {
			t.Fatal("not ready")
		}
	}
	if code, a := p.take(1, "secret-tenant", 250); code != 200 || a.Verdict != policy.Admit {
		t.Fatalf("got %d %+v", code, a)
	}
	code, a := p.take(2, "secret-tenant", 250) // the burst is used up
	want := policy.Refusal{
		Reason: policy.LimitExceeded, Tier: policy.TierProvider, Dimension: policy.TPM, Limit: 1000, Burst: 250, Need: 250, Window: time.Minute,
	}
	if w := a.Refusal.Wait; code != 200 || a.Verdict != policy.Deny || w <= 10*time.Second || w > 15*time.Second {
		t.Errorf("got %d %+v", code, a)
	}
	if a.Refusal.Remaining, a.Refusal.Wait = 0, 0; a.Refusal != want {
		t.Errorf("got %+v, want %+v", a.Refusal, want)
	}
	if code := p.settle(1, "n", 0); code != 204 {
		t.Errorf("settle: %d", code)
	}
	if code, a := p.take(3, "secret-tenant", 250); code != 200 || a.Verdict != policy.Admit {
		t.Errorf("what was not used is not back: %d %+v", code, a)
	}
	if _, a := p.take(4, "secret-tenant", 0); a.Verdict != policy.Admit {
		t.Errorf("got %+v", a)
	}
	if _, a := p.take(5, "secret-tenant", 0); a.Refusal.Tier != policy.TierTenant || a.Refusal.Reason != policy.QuotaExhausted {
		t.Errorf("got %+v, want the tenant's day used up", a)
	}
	if _, a := p.take(6, "another", 2000); a.Refusal.Reason != policy.RequestTooLarge {
		t.Errorf("got %+v", a)
	}
	if code := p.settle(7, "n", 0); code != 204 {
		t.Errorf("settle before it came: %d", code)
	}
	if code, _ := p.take(7, "another", 0); code != 409 {
		t.Errorf("a take after its settlement: %d", code)
	}
	if code := p.settle(3, "other-node", 0); code != 403 {
		t.Errorf("another node settles: %d", code)
	}
	if code, _ := p.ask("POST", central.TakePath, nodeToken, []byte("nonsense")); code != 400 {
		t.Errorf("nonsense: %d", code)
	}
	if code, _ := p.ask("POST", central.TakePath, nodeToken, make([]byte, 5000)); code != 400 {
		t.Errorf("a large one: %d", code)
	}
	must(t, s.Close())
	if code, _ := p.take(8, "secret-tenant", 1); code != 503 {
		t.Errorf("without the store: %d", code)
	}
	if _, body := p.ask("GET", "/metrics", readToken, nil); !strings.Contains(string(body), "weir_controlplane_store_up 0") {
		t.Errorf("the metrics do not say so: %s", body)
	}
	if _, body := p.ask("GET", "/api/status", readToken, nil); !strings.Contains(string(body), `"store_away": "`) {
		t.Errorf("the status does not say so: %s", body)
	}
	if log := p.log.String(); strings.Contains(log, "secret") || strings.Contains(log, nodeToken) {
		t.Errorf("the log has names of callers:\n%s", log)
	}
}

// The page, its JSON and the metrics tell of certificates that are broken or end.
func TestCredentialsAreShown(t *testing.T) {
	ca, dir := envoytest.NewCA(t), t.TempDir()
	ca.Issue(dir, "weir.test", "127.0.0.1")
	tokens := filepath.Join(dir, "tokens")
	must(t, os.WriteFile(tokens, []byte(readToken), 0o600))
	g, err := access.New(access.Files{Tokens: tokens}, nil)
	must(t, err)
	p := run(t, good, func(c *Config) { c.Access = g })
	must(t, os.WriteFile(tokens, []byte("<broken>"), 0o600))
	for end := time.Now().Add(5 * time.Second); g.Problem() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not noticed")
		}
	}
	for path, want := range map[string]string{
		"/api/status": `"asks": true`, "/metrics": "weir_controlplane_credentials_broken 1",
	} {
		if code, body := p.ask("GET", path, readToken, nil); code != 200 || !strings.Contains(string(body), want) || strings.Contains(string(body), "<broken>") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if view := p.told(readToken, `"access":{"tls":false,"asks":true,"problem":"`); strings.Contains(view, "broken>") {
		t.Errorf("the page is told what is in the file: %s", view)
	}
}
