// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

// Nothing of the page is inline, and a browser runs nothing that is not a file of it.
func TestPageFiles(t *testing.T) {
	p := run(t, good, nil)
	files, err := filepath.Glob("page/*")
	must(t, err)
	paths := []string{"/"}
	for _, f := range files {
		if filepath.Ext(f) != ".LICENSE" {
			paths = append(paths, "/"+f)
		}
	}
	if len(paths) < 10 {
		t.Fatalf("only %v", paths)
	}
	for _, path := range paths {
		resp, err := http.Get(p.url + path)
		must(t, err)
		must(t, resp.Body.Close())
		h := resp.Header
		csp := h.Get("Content-Security-Policy")
		if resp.StatusCode != 200 || h.Get("Content-Type") == "" || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'; script-src 'self'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %s %v", path, resp.Status, h)
		}
	}
	for _, path := range []string{"/page/", "/page/none.js", "/page/uplot.LICENSE", "/page/..%2fpage.go", "/page/%2e%2e%2f%2e%2e%2fgo.mod"} {
		p.want(path, 404, "")
	}
	html, err := os.ReadFile("page/index.html")
	must(t, err)
	if m := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\son\w+=|\sstyle=|https?://`).FindString(string(html)); m != "" {
		t.Errorf("the page has %q in it", m)
	}
	p.want("/api/status", 200, `"ready"`)
}

// A view holds what a reader of this version knows, and nothing else; a second one follows by itself.
func TestEvents(t *testing.T) {
	p := run(t, good, func(c *Config) { c.Look = 20 * time.Millisecond })
	p.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	resp, err := http.Get(p.url + "/api/events")
	must(t, err)
	defer resp.Body.Close()
	if typ := resp.Header.Get("Content-Type"); typ != "text/event-stream" {
		t.Errorf("got %s", typ)
	}
	var last time.Time
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for seen := 0; seen < 3 && lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var v View
		d := json.NewDecoder(strings.NewReader(data))
		d.DisallowUnknownFields()
		must(t, d.Decode(&v))
		if v.File != p.file || !v.At.After(last) || v.Local != nil || v.Quotas == nil || v.Estimates == nil {
			t.Fatalf("got %s", data)
		}
		last = v.At
		seen++
	}
	must(t, lines.Err())
}

// So many may watch and no more; who leaves makes room.
func TestEventsAreBounded(t *testing.T) {
	p := run(t, good, nil)
	var open []*http.Response
	for range maxWatchers {
		resp, err := http.Get(p.url + "/api/events")
		must(t, err)
		open = append(open, resp)
	}
	p.want("/api/events", 503, "too many")
	must(t, open[0].Body.Close())
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get(p.url + "/api/events")
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody makes room")
		}
	}
	for _, r := range open {
		r.Body.Close()
	}
	p.stop() // does not wait for those that watch
}

// What the page asks for needs somebody who may read. A browser, which asks for a name and a password, may send the token as that.
func TestPageAsksWhoReads(t *testing.T) {
	p := run(t, good, func(c *Config) { c.Access = guardOf(t, access.Files{}) })
	p.s.board.look(t.Context(), time.Now())
	basic := func(token string) []string {
		return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+token))}
	}
	for _, path := range []string{"/", "/page/main.js", "/api/history", "/api/envoys/n", "/api/search?tenant=a"} {
		for name, c := range map[string]struct {
			want    int
			headers []string
		}{
			"nobody": {401, nil}, "a node": {403, basic(nodeToken)}, "a wrong password": {401, basic("wrong")}, "a reader": {200, basic(readToken)},
			"no password": {401, []string{"Authorization", "Basic bWU="}}, "nothing that is one": {401, []string{"Authorization", "Basic ???"}},
		} {
			if got, body := p.ask("GET", path, "", nil, c.headers...); got != c.want && !(got == 503 && c.want == 200) {
				t.Errorf("%s, %s: got %d %s, want %d", path, name, got, body, c.want)
			}
		}
	}
	if got, _ := p.ask("GET", "/api/events", "", nil); got != 401 {
		t.Errorf("events: got %d", got)
	}
	resp, err := http.Get(p.url + "/")
	must(t, err)
	must(t, resp.Body.Close())
	if ways := resp.Header.Values("WWW-Authenticate"); len(ways) != 2 || !strings.HasPrefix(ways[1], "Basic ") {
		t.Errorf("a browser would not ask: %q", ways)
	}
}

// The key of a name is the one that the filter charges, whatever tiers the policy has limits of.
func TestSearchKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "apiVersion: weir/v1\nproviders: {openai: {upstream: https://x.example, models: {m: {tpm: 1000}}}}\nlimits:\n"
		tiers := map[policy.Tier]bool{}
		for tier, limit := range map[policy.Tier]string{
			policy.TierTenant: "  tenant: {default: {rpm: 10}}\n", policy.TierUser: "  user: {default: {rpm: 10}}\n", policy.TierTree: "  tree: {default: {calls: 10}}\n",
		} {
			if tiers[tier] = rapid.Bool().Draw(t, tier.String()); tiers[tier] {
				text += limit
			}
		}
		r, err := policyfile.Parse("p", []byte(strings.TrimSuffix(text, "limits:\n")))
		if err != nil {
			t.Fatal(err)
		}
		p := r.Policy
		name := rapid.OneOf(rapid.StringMatching("[a-z/ü]{0,3}"), rapid.StringMatching("[a-z]{100,300}"))
		tenant, user, tree := name.Draw(t, "tenant"), name.Draw(t, "user"), name.Draw(t, "tree")
		tier, key, note := searchKey(p, tenant, user, tree)
		if tenant+user+tree == "" {
			if key != 0 || note == "" {
				t.Fatalf("found %v", key)
			}
			return
		}
		caller := policy.Caller{} // as the filter has it
		if p.Uses(policy.TierTenant) {
			caller.Tenant = p.Hasher.Shorten(orUnknown(tenant))
		}
		if p.Uses(policy.TierUser) {
			caller.User = p.Hasher.Shorten(orUnknown(user))
		}
		if p.Uses(policy.TierTree) {
			caller.Tree = p.Hasher.Shorten(tree)
		}
		var path policy.Path
		p.Path(&path, nil, &caller)
		for _, s := range path.Steps[:path.Len] {
			if s.Tier == tier && s.Key != key {
				t.Fatalf("%v: %v, the filter has %v", tier, key, s.Key)
			}
			if s.Tier == tier {
				return
			}
		}
		if p.Uses(tier) && tiers[tier] {
			t.Fatalf("the filter meets no limit of %v", tier)
		}
	})
}

func orUnknown(name string) string {
	if name == "" {
		return policy.Unknown
	}
	return name
}

func TestSearchAnswers(t *testing.T) {
	p := run(t, good, nil)
	p.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	p.want("/api/search", 400, "write the name")
	p.want("/api/search?"+url.Values{"tenant": {"a&b"}}.Encode(), 200, "no limits of the tier tenant")
	p.want("/api/history?quota=none", 200, `"none": {}`)
	p.want("/api/history?"+strings.Repeat("quota=a&", boardQuotas+1), 400, "fewer")
	p.want("/api/envoys/none", 200, "[]")
}

// A replica that does not lead knows nothing of limits, and says so: none of them is 0.
func TestPageOfAFollower(t *testing.T) {
	p := run(t, good, func(c *Config) { c.Look = 50 * time.Millisecond })
	p.eventually("leads", func(st Status) bool { return st.Policy != nil && st.Lead.Leads })
	p.told("", `"leads":true`)
	p.s.setLead(nil, "other")
	if view := p.told("", `"fleet_unknown":"another control plane`); !strings.Contains(view, `"leader":"other"`) {
		t.Errorf("got %s", view)
	}
	p.want("/api/search?tenant=a", 503, "another control plane")
	if _, text := p.get("/metrics"); strings.Contains(text, "weir_fleet_quotas") || !strings.Contains(text, "weir_controlplane_leads 0") {
		t.Errorf("got %s", text)
	}
}
