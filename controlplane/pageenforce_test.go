// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// turn turns the switch as an admin does, and says when.
func (p *plane) turn(to, by string) time.Time {
	p.t.Helper()
	now := time.Now()
	must(p.t, p.s.say(p.t.Context(), func(o *overlay) error { o.turn(to, by, now); return nil }))
	return now
}

// Whoever has the page open sees the switch within a second: red in both schemes, who turned it, and when.
func TestPageSaysEnforce(t *testing.T) {
	p := run(t, adminPolicy, func(c *Config) { c.Look = time.Hour }) // what it shows, it hurries to show
	p.servedSoon("a policy", policyIsThere)
	b := newBrowser(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(p.url + "/"))
	b.await(`document.getElementById("state").innerText.includes("ready") && document.getElementById("banner").hidden`)
	for _, word := range []string{EnforceOff, EnforceShadow} {
		at := p.turn(word, "alice <b>")
		b.await(`!document.getElementById("banner").hidden && document.getElementById("banner").innerText.includes("Enforce is ` + word + `.")`)
		if took := time.Since(at); took > 3*time.Second { // a second, on a machine that has nothing else to do
			t.Errorf("%s is on the page after %v", word, took)
		}
		text := b.text("#banner")
		for _, w := range []string{"Since " + at.Format(time.TimeOnly) + " by alice <b>.", "weir enforce on"} {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in %q", w, text)
			}
		}
		b.await(`document.title === "weir: enforce ` + word + `" && document.getElementById("said").innerText.includes("Enforce is ` + word + `.")`)
		for _, scheme := range []string{"light", "dark"} {
			b.size(1280, 900, scheme)
			if got := eval[string](b, `getComputedStyle(document.getElementById("banner")).backgroundColor`); got != "rgb(179, 38, 30)" {
				t.Errorf("%s, %s: the banner is %s", word, scheme, got)
			}
			b.axe()
			b.picture("enforce-" + word + "-" + scheme)
		}
		b.size(390, 844, "dark")
		b.await(`document.documentElement.scrollWidth <= window.innerWidth`)
	}
	p.turn(EnforceOn, "bob")
	b.await(`document.getElementById("banner").hidden && getComputedStyle(document.getElementById("banner")).display === "none" && document.title === "weir: ready"`)
	b.quiet(p.url)
}

// events gives what a page is told, one after the other.
func (p *plane) events() func() View {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	p.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/events", http.NoBody)
	must(p.t, err)
	resp, err := http.DefaultClient.Do(r)
	must(p.t, err)
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewReader(resp.Body)
	return func() (v View) {
		for {
			line, err := lines.ReadString('\n')
			must(p.t, err)
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				must(p.t, json.Unmarshal([]byte(data), &v))
				return v
			}
		}
	}
}

// What an admin says does not wait for the next look, and takes no sample; turning the switch to where it is changes nothing.
func TestPageHurries(t *testing.T) {
	p := run(t, adminPolicy, func(c *Config) { c.Look = time.Hour })
	next := p.events()
	p.servedSoon("a policy", policyIsThere)
	at := p.turn(EnforceOff, "alice")
	p.turn(EnforceOff, "bob")
	v := next()
	for v.Enforce != EnforceOff {
		v = next()
	}
	if v.By != "alice" || v.Since.Sub(at).Abs() > time.Millisecond {
		t.Errorf("%+v, turned at %v", v.Switch, at)
	}
	if st := p.s.Status(); st.Switch != v.Switch {
		t.Errorf("the status says %+v", st.Switch)
	}
	if n := len(p.s.board.gauges.Times()); n > 1 {
		t.Errorf("%d samples", n)
	}
}
