// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"

	"github.com/weirproxy/weir/policy"
)

const limitExample = "tenant acme: tpm 10_000 burst 25%"

// limit reads a line of the policy: TIER NAME: WORD VALUE …, or output N.
func (p *parser) limit() {
	tier, _ := p.next("", "")
	if tier == "output" {
		if n, ok := p.count("output", "output 1024"); ok {
			c := policy.Count(n)
			p.now.Output.Default = &c
			p.places["output.default"] = p.line
			p.end()
		}
		return
	}
	name, ok := p.next("a name", limitExample)
	if !ok {
		return
	}
	head, found := strings.CutSuffix(name, ":")
	if !found || head == "" {
		p.fail("write "+tier+" "+strings.Trim(name, ":")+": tpm 10_000", "no name with a colon after %s", tier)
		return
	}
	if p.take("none") {
		p.remove(tier, head)
		p.end()
		return
	}
	e := new(policy.EnvironmentSpec)
	for n := 0; len(p.words) > 0; n++ {
		if !p.setting(tier, e) {
			return
		}
	}
	if *e == (policy.EnvironmentSpec{}) {
		p.fail("write "+tier+" "+name+" tpm 10_000", "%s %s has no limit", tier, head)
		return
	}
	p.set(tier, head, e)
}

// setting reads one word of a limit, and its value.
func (p *parser) setting(tier string, e *policy.EnvironmentSpec) bool {
	word, _ := p.next("", "")
	l := &e.LimitSpec
	counts := map[string]**policy.Count{
		"rps": &l.RPS, "rpm": &l.RPM, "rph": &l.RPH, "rpd": &l.RPD, "tpm": &l.TPM, "tph": &l.TPH, "tpd": &l.TPD,
		"itpm": &l.ITPM, "otpm": &l.OTPM, "in_flight": &l.InFlight, "max_output": &l.MaxOutput,
	}
	if c, ok := counts[word]; ok {
		*c = new(policy.Count)
		return p.value(*c, word, word+" 10_000")
	}
	switch word {
	case "window":
		l.Window = new(policy.Window)
		return p.value(l.Window, "the window", "window 60s, or window continuous")
	case "burst":
		l.Burst = new(policy.Burst)
		return p.value(l.Burst, "the burst", "burst 25%, or burst 2_500")
	case "mode":
		return p.value(&l.Mode, "the mode", "mode shadow")
	case "share":
		if tier == "environment" {
			return p.value(&e.Share, "the share", "share 20%")
		}
	}
	p.fail("write rps rpm rph rpd tpm tph tpd itpm otpm in_flight, window, burst or mode, each with its value, such as "+limitExample,
		"unknown word %q in a limit", word)
	return false
}

// set puts a limit into the policy.
func (p *parser) set(tier, name string, e *policy.EnvironmentSpec) {
	path := "limits." + tier
	switch tier {
	case "environment":
		p.now.Limits.Environment[name] = e
	case "tenant":
		p.now.Limits.Tenant[name] = &e.LimitSpec
	case "user":
		p.now.Limits.User[name] = &e.LimitSpec
	case "tool":
		p.now.Limits.Tool[name] = &e.LimitSpec
	case "model":
		p.now.Providers["api"].Models[name] = &e.LimitSpec
		if p.model == "" {
			p.model = strings.ReplaceAll(name, "*", "")
		}
		path = "providers.api.models"
	}
	p.places[policy.Join(path, name)] = p.line
}

// remove takes a limit out of the policy.
func (p *parser) remove(tier, name string) {
	l := &p.now.Limits
	m := map[string]map[string]*policy.LimitSpec{"tenant": l.Tenant, "user": l.User, "tool": l.Tool, "model": p.now.Providers["api"].Models}
	there := m[tier][name] != nil || tier == "environment" && l.Environment[name] != nil
	if !there {
		p.fail("", "%s %s has no limit that could be taken away", tier, name)
		return
	}
	delete(m[tier], name)
	if tier == "environment" {
		delete(l.Environment, name)
	}
}
