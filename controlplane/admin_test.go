// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

const adminPolicy = `apiVersion: weir/v1
providers: {tools: {upstream: "http://tools.test", dialect: generic}}
limits: {tenant: {default: {rpm: 100, tpm: 1000}, named: {rpd: 7}}, user: {default: {rpm: 5}}}
`

// administered runs a control plane that knows an admin.
func administered(t *testing.T, change func(*Config)) *plane {
	return run(t, adminPolicy, func(c *Config) {
		c.Access = guardOf(t, access.Files{})
		if change != nil {
			change(c)
		}
	})
}

// asAdmin asks and reads the status, as an admin.
func (p *plane) asAdmin(method, path, body string) (int, string) {
	p.t.Helper()
	code, b := p.ask(method, path, adminToken, []byte(body))
	return code, string(b)
}

func (p *plane) state() (st Status) {
	p.t.Helper()
	_, b := p.asAdmin(http.MethodGet, "/api/status", "")
	must(p.t, json.Unmarshal([]byte(b), &st))
	return st
}

// served is the policy that Envoys get now.
func (p *plane) served() *policyfile.Result {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.loaded == nil {
		return nil
	}
	return p.s.loaded.result
}

func (p *plane) servedSoon(what string, holds func(*policyfile.Result) bool) {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if r := p.served(); r != nil && holds(r) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("never %s\n%s", what, p.log)
		}
	}
}

func policyIsThere(*policyfile.Result) bool { return true }

func limitOf(r *policyfile.Result, tenant string) *policy.LimitSpec {
	return r.Spec.Limits.Tenant[tenant]
}

// The switch holds at once over what the file says, a change of the file does not undo it, and the log says whose it was.
func TestEnforce(t *testing.T) {
	p := administered(t, nil)
	p.servedSoon("a policy", policyIsThere)
	for _, row := range []struct{ word, mode string }{{"shadow", "shadow"}, {"off", "off"}, {"on", "enforce"}, {"off", "off"}} {
		code, body := p.asAdmin(http.MethodPost, EnforcePath, `{"enforce":"`+row.word+`"}`)
		if want := `{"enforce":"` + row.word + `","mode":"` + row.mode + `","kept":false}` + "\n"; code != 200 || body != want {
			t.Errorf("%s: %d %s", row.word, code, body)
		}
		if st := p.state(); p.served().Policy.Mode.String() != row.mode || st.Enforce != row.word || st.Policy.Mode != row.mode {
			t.Errorf("%s: served %v, status %s %s", row.word, p.served().Policy.Mode, st.Enforce, st.Policy.Mode)
		}
	}
	p.write(strings.Replace(adminPolicy, "rpd: 7", "rpd: 8", 1))
	p.servedSoon("the file's change", func(r *policyfile.Result) bool { return *limitOf(r, "named").RPD == 8 })
	if p.served().Policy.Mode != policy.Off {
		t.Error("the file has turned it on")
	}
	if want := `msg="policy changed" field=limits.tenant.named.rpd was=7 is=8`; strings.Count(p.log.String(), want) != 1 || strings.Count(p.log.String(), "policy changed") != 1 {
		t.Errorf("no %s in\n%s", want, p.log)
	}
	if !strings.Contains(p.log.String(), "enforce to=shadow by=a") {
		t.Errorf("log:\n%s", p.log)
	}
}

// Shadow never makes an Envoy count that the policy has turned off.
func TestEnforceOnlyLowers(t *testing.T) {
	r, err := policyfile.Parse("p", []byte(adminPolicy+"mode: off\n"))
	must(t, err)
	got, err := (&overlay{Enforce: EnforceShadow}).over(r)
	if must(t, err); got.Policy.Mode != policy.Off {
		t.Errorf("got %v", got.Policy.Mode)
	}
}

// With nothing said, or a grant that is over, the policy is the file's to the byte; with one, all else is as it was.
func TestOverlayChangesNothingElse(t *testing.T) {
	r, err := policyfile.Parse("p", []byte(adminPolicy))
	must(t, err)
	o := overlay{Enforce: EnforceOn, Grants: []Grant{{Tenant: "acme", Limit: "tpm", Add: 500, Until: time.Now().Add(time.Hour)}}}
	got, err := o.over(r)
	must(t, err)
	if limitOf(r, "acme") != nil || *limitOf(r, "default").TPM != 1000 {
		t.Error("the file's policy has changed")
	}
	if l := limitOf(got, "acme"); *l.TPM != 1500 || *l.RPM != 100 {
		t.Errorf("got %+v", l)
	}
	delete(got.Spec.Limits.Tenant, "acme")
	if b, err := policy.Encode(got.Spec); err != nil || string(b) != string(r.JSON) {
		t.Errorf("%v\n%s\n%s", err, b, r.JSON)
	}
	late := o.at(time.Now().Add(2 * time.Hour))
	if same, err := late.over(r); err != nil || same != r {
		t.Errorf("%v: not the file's", err)
	}
}

// A grant raises one limit of one tenant, grants add up, and each ends by itself.
func TestGrant(t *testing.T) {
	p := administered(t, nil)
	p.servedSoon("a policy", policyIsThere)
	for _, body := range []string{
		`{"tenant":"acme","limit":"tpm","add":"500","for_s":60}`, `{"tenant":"acme","limit":"tpm","add":"50","for_s":0.3}`,
		`{"tenant":"named","limit":"rpd","add":"3","for_s":60}`,
	} {
		if code, answer := p.asAdmin(http.MethodPost, GrantsPath, body); code != 200 || !strings.Contains(answer, `"by":"a"`) || !strings.Contains(answer, `"kept":false`) {
			t.Fatal(code, answer)
		}
	}
	if r := p.served(); *limitOf(r, "acme").TPM != 1550 || *limitOf(r, "named").RPD != 10 || *limitOf(r, "default").TPM != 1000 {
		t.Errorf("served %s", r.JSON)
	}
	p.servedSoon("the short grant over", func(r *policyfile.Result) bool { return *limitOf(r, "acme").TPM == 1500 })
	if g := p.state().Grants; len(g) != 2 || g[0].Tenant != "acme" {
		t.Errorf("grants %+v", g)
	}
	if code, body := p.asAdmin(http.MethodDelete, GrantsPath+"?tenant=acme", ""); code != 200 || !strings.Contains(body, `"acme"`) || limitOf(p.served(), "acme") != nil {
		t.Errorf("%d %s", code, body)
	}
	if strings.Contains(p.log.String(), "acme") {
		t.Errorf("the log names a tenant:\n%s", p.log)
	}
}

func TestAdminRefusals(t *testing.T) {
	p := administered(t, nil)
	p.servedSoon("a policy", policyIsThere)
	for _, row := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{http.MethodPost, EnforcePath, `{"enforce":"maybe"}`, 400, "on, shadow or off"},
		{http.MethodPost, EnforcePath, `{"enforced":"on"}`, 400, "unknown field"},
		{http.MethodPost, EnforcePath, strings.Repeat(" ", 5000) + `{"enforce":"on"}`, 400, "too large"},
		{http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tps","add":"5","for_s":60}`, 400, "write tpm"},
		{http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tpd","add":"5","for_s":60}`, 409, "write one of rpm, tpm"},
		{http.MethodPost, GrantsPath, `{"tenant":"default","limit":"tpm","add":"5","for_s":60}`, 400, "is no tenant"},
		{http.MethodPost, GrantsPath, `{"tenant":"","limit":"tpm","add":"5","for_s":60}`, 400, "a tenant has"},
		{http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tpm","add":"0","for_s":60}`, 400, "between 1"},
		{http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tpm","add":"5","for_s":-1}`, 400, "lasts at most"},
		{http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tpm","add":"5","for_s":1e12}`, 400, "lasts at most"},
		{http.MethodDelete, GrantsPath + "?tenant=acme", "", 409, "has no grant"},
	} {
		if code, body := p.asAdmin(row.method, row.path, row.body); code != row.code || !strings.Contains(body, row.says) {
			t.Errorf("%s: %d %s", row.body, code, body)
		}
	}
	for token, want := range map[string]int{readToken: 403, nodeToken: 403, "": 401} {
		if code, _ := p.ask(http.MethodPost, EnforcePath, token, []byte(`{"enforce":"off"}`)); code != want {
			t.Errorf("token %q: %d", token, code)
		}
	}
	if p.state().Enforce != "on" || len(p.state().Grants) > 0 {
		t.Errorf("%+v", p.state())
	}
	if code, body := run(t, adminPolicy, nil).ask(http.MethodPost, EnforcePath, adminToken, []byte(`{"enforce":"off"}`)); code != 403 || !strings.Contains(string(body), "--token-file") {
		t.Errorf("where nobody is asked: %d %s", code, body)
	}
}

// With a store a restart forgets nothing, and other replicas do the same within a second.
func TestAdminIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	open := func() store.Store {
		s, err := store.Open("bolt:" + file)
		must(t, err)
		return s
	}
	kept := open()
	stored := func(c *Config) { c.Store = kept }
	a, b := administered(t, stored), administered(t, stored)
	a.servedSoon("a policy", func(*policyfile.Result) bool { return true })
	if code, body := a.asAdmin(http.MethodPost, GrantsPath, `{"tenant":"acme","limit":"tpm","add":"500","for_s":600}`); code != 200 || !strings.Contains(body, `"kept":true`) {
		t.Fatal(code, body)
	}
	if code, body := b.asAdmin(http.MethodPost, EnforcePath, `{"enforce":"shadow"}`); code != 200 {
		t.Fatal(code, body)
	}
	both := func(r *policyfile.Result) bool {
		return r.Policy.Mode == policy.Shadow && limitOf(r, "acme") != nil && *limitOf(r, "acme").TPM == 1500
	}
	start := time.Now()
	a.servedSoon("what the other said", both)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	a.stop()
	b.stop()
	must(t, kept.Close())
	kept = open()
	defer kept.Close()
	c := administered(t, stored)
	c.servedSoon("what was said before", func(*policyfile.Result) bool { return true })
	if !both(c.served()) {
		t.Errorf("the first policy is %s", c.served().JSON)
	}
	c.stop()
}

// Where the store is away, nothing changes and the admin hears it.
func TestAdminStoreAway(t *testing.T) {
	p := administered(t, func(c *Config) {
		s, err := store.Open("redis://127.0.0.1:1")
		must(t, err)
		t.Cleanup(func() { s.Close() })
		c.Store, c.Logger = s, slog.New(slog.DiscardHandler)
	})
	p.servedSoon("a policy", policyIsThere)
	if code, body := p.asAdmin(http.MethodPost, EnforcePath, `{"enforce":"off"}`); code != 503 || !strings.Contains(body, "nothing was changed") || p.served().Policy.Mode != policy.Enforce {
		t.Errorf("%d %s", code, body)
	}
}

// A slowStore takes what an admin says only when it is let go.
type slowStore struct {
	store.Store
	begun, stuck chan struct{}
}

func (s slowStore) Save(ctx context.Context, t store.Term, records ...store.Record) error {
	if len(records) == 1 && records[0].Key == adminRecord {
		close(s.begun)
		<-s.stuck
	}
	return s.Store.Save(ctx, t, records...)
}

// A policy does not wait until what an admin says is written down.
func TestPolicyDoesNotWaitForAnAdmin(t *testing.T) {
	kept, err := store.Open("bolt:" + filepath.Join(t.TempDir(), "store"))
	must(t, err)
	slow := slowStore{kept, make(chan struct{}), make(chan struct{})}
	p := administered(t, func(c *Config) { c.Store = slow })
	letGo := sync.OnceFunc(func() { close(slow.stuck) })
	t.Cleanup(letGo)
	p.servedSoon("a policy", policyIsThere)
	code := make(chan int)
	go func() {
		c, _ := p.asAdmin(http.MethodPost, EnforcePath, `{"enforce":"shadow"}`)
		code <- c
	}()
	<-slow.begun
	p.write(good + "limits: {tenant: {default: {rpm: 7}}}\n")
	p.servedSoon("the file's", func(r *policyfile.Result) bool { return strings.Contains(string(r.JSON), `"rpm":"7"`) })
	letGo()
	if c := <-code; c != 200 {
		t.Errorf("the admin got %d", c)
	}
	p.servedSoon("both", func(r *policyfile.Result) bool {
		return r.Policy.Mode == policy.Shadow && strings.Contains(string(r.JSON), `"rpm":"7"`)
	})
	p.stop()
	must(t, kept.Close())
}
