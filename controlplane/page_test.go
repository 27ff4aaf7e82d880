// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/fleet/fleettest"
	"github.com/weirproxy/weir/policy"
	pfleet "github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

const shown = `apiVersion: weir/v1
providers:
  openai:
    upstream: "http://127.0.0.1:1"
    models: {gpt-4o: {tpm: 60000, window: 10s}, gpt-4o-mini: {tpm: 200000}, "*": {rpm: 60}}
  anthropic: {upstream: "http://127.0.0.1:1", models: {claude-sonnet-4-5: {tpm: 40000, window: continuous}}}
limits:
  tenant: {acme: {tpm: 20000}, default: {tpm: 5000}}
  user: {default: {rpm: 6000}}
  tree: {default: {calls: 100}}
fleet: {max_envoys: 4}
`

// A pageRig is a control plane with Envoys that have something to show.
type pageRig struct {
	*plane
	policy *policy.Policy
	envoy  atomic.Pointer[string] // what the Envoy of this machine counts
	waited atomic.Int64           // of it, how many have waited
	denied atomic.Int64           // calls a second, of each node, for the tenant acme
}

func newPageRig(t *testing.T) *pageRig {
	t.Helper()
	r := new(pageRig)
	text := envoyCounts
	r.envoy.Store(&text)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, *r.envoy.Load(), r.waited.Add(1)) }))
	t.Cleanup(admin.Close)
	r.plane = run(t, shown, func(c *Config) {
		c.Fleet, c.Look = fleet.NewVolatile(true), 500*time.Millisecond
		c.Admin = func() string { return strings.TrimPrefix(admin.URL, "http://") }
	})
	p, err := policyfile.Parse("p", []byte(shown))
	must(t, err)
	r.policy = p.Policy
	r.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	return r
}

// envoyCounts is what an Envoy says at /stats/prometheus.
const envoyCounts = `# TYPE weir_requests_total counter
weir_requests_total{weir_decision="admit"} 900
weir_requests_total{weir_decision="deny",weir_reason="limit_exceeded",weir_tier="tenant",weir_dimension="tpm"} 31
weir_requests_total{weir_decision="deny",weir_reason="queue_timeout",weir_tier="provider",weir_dimension="tpm"} 7
# TYPE weir_queued_total counter
weir_queued_total{weir_class="normal"} 52
# TYPE weir_queue_waits_total counter
weir_queue_waits_total{weir_class="normal",weir_within="1s"} 40
weir_queue_waits_total{weir_class="normal",weir_within="3s"} %d
# TYPE weir_input_errors_total counter
weir_input_errors_total{weir_how="exact",weir_within="1"} 99
weir_input_errors_total{weir_how="exact",weir_within="20"} 1
# TYPE other counter
other 1
`

type named struct {
	pfleet.Name
	kind policy.WindowKind
}

// names are the quotas of the rig's policy that its nodes use, those of a tenant and of a user for keys that no policy names.
func (r *pageRig) names() (names []named) {
	h := &r.policy.Hasher
	for _, e := range r.policy.Entries() {
		key := e.Key
		if key == 0 {
			key = map[policy.Tier]policy.Key{
				policy.TierTenant: h.Key(policy.TierTenant, "globex"), policy.TierUser: h.Key(policy.TierUser, "globex", "<b>ann</b>"),
				policy.TierTree: h.Key(policy.TierTree, "globex", "ann", "t1"),
			}[e.Tier]
		}
		for i := range e.Limit.Meters {
			m := &e.Limit.Meters[i]
			names = append(names, named{pfleet.Name{
				Tier: e.Tier, Dimension: m.Dimension, Sub: m.Sub(), Key: key, Entry: policy.EntryKey(*h, e.Tier, e.Name), Window: m.Window().Milliseconds(),
			}, m.Kind})
		}
	}
	return names
}

// join starts a node that uses all limits of the policy.
func (r *pageRig) join(name string, part float64) {
	r.t.Helper()
	params := pfleet.DefaultParams()
	e := fleettest.New(name, 1, params)
	c := fleettest.NewClient(e)
	c.XDS, c.Control, c.Every = r.xds, strings.TrimPrefix(r.url, "http://"), 50*time.Millisecond
	type use struct {
		name  pfleet.Name
		share *fleettest.Share
	}
	var uses []use
	for _, n := range r.names() {
		if n.Tier == policy.TierTree {
			e.Stash(n.String())
			continue
		}
		memory := pfleet.MemoryOf(n.Window*int64(time.Millisecond), int64(r.policy.Fleet.Jitter))
		if n.kind == policy.Continuous {
			memory = 0
		}
		uses = append(uses, use{n.Name, e.Share(c.Now(), n.String(), n.Window*int64(time.Millisecond), memory)})
	}
	last := int64(0)
	c.Tick = func(now int64, e *fleettest.Envoy) {
		if now-last < int64(500*time.Millisecond) {
			return
		}
		last = now
		for _, u := range uses {
			wants := int64(part * 100 * float64(1+u.name.Window/60_000))
			s := pfleet.Seen{Key: u.name.String(), Epoch: e.Rates[u.name.String()].Epoch, Sent: e.Offer(now, u.share, wants, 1)}
			s.Answered = 10
			switch {
			case u.name.Key == r.policy.Hasher.Key(policy.TierTenant, "acme"):
				s.Denied, s.Queued = r.denied.Load(), 2
			case u.name.Tier == policy.TierProvider && now > int64(2*time.Second) && now < int64(3*time.Second):
				s.Rejected = 4
			}
			e.Seen = append(e.Seen, s)
		}
		h := &r.policy.Hasher
		if n := r.denied.Load(); n > 0 {
			acme := h.Key(policy.TierTenant, "acme")
			e.Denials = []pfleet.Denial{
				{Tier: policy.TierTenant, Dimension: policy.TPM, Reason: policy.LimitExceeded, Verdict: policy.Deny, Key: acme, Tenant: acme, Class: "batch", Limit: 20000, Calls: n},
				{Reason: policy.UnreadableBody, Verdict: policy.Deny, Tenant: h.Key(policy.TierTenant, "globex"), Calls: 1},
			}
			e.Waits = []pfleet.Waits{{Class: "normal", Now: 2, Within: [8]int64{3: 1}}}
		}
		e.Ratios = []pfleet.Ratio{
			{Key: h.CalibrationKey("openai", "gpt-4o"), Weight: 400, Ratio: 1_012_000, Spread: 4_000},
			{Key: h.CalibrationKey("openai", "o9-preview"), Weight: 20, Ratio: 930_000, Spread: 50_000},
		}
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	r.t.Cleanup(func() { cancel(); <-done })
}

// The page in a real browser: what it shows, what its console says, and whether everybody can use it.
func TestPage(t *testing.T) {
	r := newPageRig(t)
	r.denied.Store(3)
	r.join("egress-1", 8)
	r.join("egress-2", 3)
	r.eventually("used", func(st Status) bool {
		return len(st.Fleet.Quotas) >= 7 && len(st.Nodes) == 2 && len(st.Fleet.Changes) > 0
	})
	b := newBrowser(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(r.url + "/"))
	b.await(`document.querySelectorAll("#limits .chart canvas").length >= 6`)
	b.await(`document.getElementById("refusals").innerText.includes("limit_exceeded")`)
	b.await(`document.querySelector("#rates .chart canvas")`)
	b.await(`document.getElementById("queues").innerText.includes("3s")`)
	for section, words := range map[string][]string{
		"state":     {"ready", "mode enforce"},
		"overview":  {"2 of 2", "all have it"},
		"limits":    {"provider openai/gpt-4o", "tenant acme", "user default #", "per minute", "tpm"},
		"refusals":  {"tenant acme tpm, 20,000", "limit_exceeded", "the limit has less left", "unreadable_body", "tenant default #", "batch", "refused"},
		"queues":    {"normal", "tenant acme", "3s"},
		"rates":     {"rejected", "→", "provider openai/gpt-4o tpm"},
		"envoys":    {"egress-1", "egress-2", "has the policy"},
		"estimates": {"openai/gpt-4o", "1.2 % more", "#", "7.0 % less", "99 %"},
	} {
		text := b.text("#" + section)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in %q", section, w, text)
			}
		}
	}
	b.axe()
	b.picture("light")
	b.size(1280, 900, "dark")
	b.axe()
	b.picture("dark")
	b.size(390, 844, "dark")
	b.await(`document.documentElement.scrollWidth <= window.innerWidth`) // nothing sticks out of a phone
	b.axe()
	b.picture("phone")
	b.quiet(r.url)
}

// What changes is there two seconds later, without a new page; what somebody has opened stays open, and where they are.
func TestPageFollows(t *testing.T) {
	r := newPageRig(t)
	b := newBrowser(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(r.url + "/"))
	b.await(`document.getElementById("envoys").innerText.includes("None has connected")`)
	for section, words := range map[string]string{
		"overview": "not known", "limits": "no Envoy has reported one", "rates": "No limit in use", "estimates": "not known",
	} {
		if text := b.text("#" + section); !strings.Contains(text, words) {
			t.Errorf("%s: no %q in %q", section, words, text)
		}
	}
	b.axe()
	b.picture("empty")
	alerts := eval[string](b, `import("/page/overview.js").then(o => o.alerts({ready: false, not_ready: "n1 <b>",
		policy: {mode: "off", notices: [{file: "f", line: 1, path: "p", text: "n2"}]}, problem: {message: "n3"}, access: {problem: "n4"}, store_away: "n5",
		fleet_store_error: "n6", learning: true, lead: {leads: false, leader: "n7", name: "n8"}}).filter(Boolean).map(x => x.textContent).join("\n"))`, chromedp.EvalAwaitPromise)
	for _, w := range []string{"n1 <b>", "mode is off", "f:1: p: n2", "n3", "n4", "n5", "n6", "n7", "n8", "Learning"} {
		if !strings.Contains(alerts, w) {
			t.Errorf("no %q in %q", w, alerts)
		}
	}
	nack := eval[string](b, `import("/page/envoys.js").then(e => {
		e.showEnvoys({envoys_total: 1, envoys: [{id: "<i>", state: "rejecting", since: "2026-01-01T00:00:00Z", policy: "1", shares: 0, silent: 0, behind: 0,
			types: [{name: "listener", sent: "2", acked: "1", nack: {version: "2", message: "no <b>", at: "2026-01-01T00:00:00Z"}}]}]});
		return document.querySelector("#envoys .content").textContent;
	})`, chromedp.EvalAwaitPromise)
	for _, w := range []string{"<i> rejects the policy", "1 NACK", "NACK of 2 at 2026-01-01", "no <b>"} {
		if !strings.Contains(nack, w) {
			t.Errorf("no %q in %q", w, nack)
		}
	}
	r.join("egress-1", 5)
	b.await(`document.querySelector("details.envoy summary")?.innerText.includes("egress-1")`)
	b.do(chromedp.Focus(`details.envoy summary`), chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector("details.envoy[open]").innerText.includes("acknowledged")`)
	b.await(`document.querySelector("details.envoy[open]").innerText.includes("provider openai/gpt-4o")`)
	b.axe()
	b.picture("envoy")

	r.write(strings.Replace(shown, "tpm: 60000", "tpm: <i>sixty</i>", 1))
	b.await(`document.getElementById("alerts").innerText.includes("<i>sixty</i>") && document.getElementById("alerts").innerText.includes("the last good policy stays") && document.title == "weir: policy with errors"`)
	b.await(`document.getElementById("said").innerText.includes("The policy file has errors")`)
	r.write(strings.Replace(shown, "fleet:", "mode: shadow\nfleet:", 1))
	b.await(`document.getElementById("state").innerText.includes("mode shadow") && document.title == "weir: ready"`)
	if got := eval[string](b, `document.activeElement.innerText + document.activeElement.parentNode.open`); !strings.Contains(got, "egress-1") || !strings.HasSuffix(got, "true") {
		t.Errorf("the keyboard is at %q", got)
	}
	broken := "no metrics"
	r.envoy.Store(&broken)
	b.await(`document.getElementById("estimates").innerText.includes("does not say what it counts")`)
	b.quiet(r.url)
	r.stop()
	b.await(`document.getElementById("live").innerText.includes("no news since")`)
	b.picture("lost")
}

// By keyboard alone: the search finds what a name is known by, and what is written by others never becomes HTML.
func TestPageSearch(t *testing.T) {
	r := newPageRig(t)
	r.join("egress-1", 5)
	r.eventually("used", func(st Status) bool { return len(st.Fleet.Quotas) >= 7 })
	b := newBrowser(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(r.url+"/"), chromedp.Focus(`input[name=tenant]`), chromedp.KeyEvent("globex\t<b>ann</b>"+kb.Enter))
	b.await(`document.querySelector("#search .content").innerText.includes("Known as the user #")`)
	text := b.text("#search .content")
	key := fmt.Sprintf("#%016x", uint64(r.policy.Hasher.Key(policy.TierUser, "globex", "<b>ann</b>")))
	for _, w := range []string{key, "user default " + key, "egress-1", "6,000"} {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in %q", w, text)
		}
	}
	b.axe()
	b.do(chromedp.Focus(`input[name=tenant]`), chromedp.KeyEvent(strings.Repeat(kb.Delete, 6)+kb.End+strings.Repeat(kb.Backspace, 6)+"nobody\t"+strings.Repeat(kb.Backspace, 12)+kb.Enter))
	b.await(`document.querySelector("#search .content").innerText.includes("No Envoy has reported a limit of it")`)
	b.quiet(r.url)
}
