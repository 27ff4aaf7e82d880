// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policyfile"
)

// weir runs a command line.
func weir(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(context.Background(), args, streams{strings.NewReader(in), &o, &e})
	return code, o.String(), e.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const explainPolicy = `apiVersion: weir/v1
trust: [127.0.0.0/8]
explain: {header: true}
providers:
  openai: {upstream: "http://openai.test", models: {"*": {rpm: 600, tpm: 60_000, in_flight: 50}, small: {tpm: 9000}}}
  backup: {upstream: "http://backup.test", dialect: openai}
limits:
  tenant: {default: {tpm: 20_000, rpd: 5000}, tiny: {tpm: 500}}
  user: {default: {rpm: 60}}
  environment: {default: {share: 50%}, ci: {share: 20%}}
prices: {"gpt-*": {input: 2.5, output: 10}}
classes:
  interactive: {share: 60%, on_limit: deny}
  batch: {share: 40%, on_limit: queue, wait: 20s}
degrade: {gpt-4o: {model: small, max_tokens: 50}}
spill: {other: {provider: backup, model: other}}
routes: [{match: {path: "/openai/v1/completions"}, class: batch, on_limit: degrade}]
`

const (
	chat         = "/openai/v1/chat/completions"
	greetingBody = `{"model":"gpt-4o","max_tokens":600,"messages":[{"role":"user","content":"hi"}]}`
)

func explained(t *testing.T, body string, args ...string) (e explanation, code int) {
	t.Helper()
	args = append([]string{"explain", "--json", "--policy", write(t, "policy.yaml", explainPolicy), "-"}, args...)
	code, out, errs := weir(t, body, args...)
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return e, code
}

// What weir explain says is what an Envoy's filter does: cost, limits, how many fit at once, and what comes then.
func TestExplainIsWhatTheFilterDoes(t *testing.T) {
	for _, row := range []struct{ class, path, body, does string }{
		{"interactive", chat, greetingBody, "deny"},
		{"batch", chat, greetingBody, "queue"},
		{"batch", chat, `{"model":"small","messages":[{"role":"user","content":"hi"}]}`, "queue"},
		{"interactive", "/openai/v1/completions", `{"model":"gpt-4o","prompt":"hello","max_tokens":2000}`, "degrade"},
	} {
		e, _ := explained(t, row.body, "--path", row.path, "-H", "x-tenant: acme", "-H", "X-Priority: "+row.class)
		if e.Then == nil || e.Then.Does != row.does {
			t.Errorf("%s: then %+v, want %s", row.path, e.Then, row.does)
			continue
		}
		admitted, why := fillAsEnvoy(t, row.path, row.class, row.body, e.Then.Does)
		if admitted != e.AtOnce {
			t.Errorf("%s: %d at once, the filter admits %d", row.body, e.AtOnce, admitted)
		}
		said := fmt.Sprintf("charge;requests=1;input=%d;output=%d;", e.Cost.Input, e.Cost.Output)
		if !strings.HasPrefix(why, said) {
			t.Errorf("%s: said %s, the filter %s", row.body, said, why)
		}
		for _, l := range e.Limits {
			said := fmt.Sprintf(", %s;dimension=%s;limit=%d;window=%d;", l.Tier, l.Dimension, l.Limit, int(l.WindowS))
			if !strings.Contains(why, said) {
				t.Errorf("%s: said %s, the filter %s", row.body, said, why)
			}
		}
		if n := strings.Count(why, "dimension="); n != len(e.Limits) {
			t.Errorf("%s: said %d limits, the filter %d", row.body, len(e.Limits), n)
		}
	}
}

// fillAsEnvoy sends the same request until one does not go where it is meant to.
func fillAsEnvoy(t *testing.T, path, class, body, does string) (admitted int, why string) {
	t.Helper()
	r, err := policyfile.Parse("policy.yaml", []byte(explainPolicy))
	if err != nil {
		t.Fatal(err)
	}
	p, err := filtertest.NewProcess(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Configure(r.JSON); err != nil {
		t.Fatal(err)
	}
	for ; ; admitted++ {
		x := p.Worker(0).Open(filtertest.Request{
			Path: path, Body: []byte(body), Properties: map[string]string{"source.address": "127.0.0.1:1"},
			Headers: [][2]string{{"x-tenant", "acme"}, {"x-priority", class}, {"x-weir-explain", "1"}},
		})
		switch {
		case does == "deny" && x.Reply != nil && x.Reply.Status == 429, does == "queue" && x.Reply == nil && !x.Sent:
			return admitted, why
		case !x.Sent:
			t.Fatalf("%+v", x.Reply)
		}
		x.Respond(200, false)
		for _, h := range x.AnswerHeaders() {
			switch {
			case h[0] == "x-weir-decision" && h[1] == does:
				return admitted, why
			case h[0] == "x-weir-explain" && admitted == 0:
				why = h[1]
			}
		}
	}
}

func TestExplainSaysWhereFiguresComeFrom(t *testing.T) {
	e, code := explained(t, greetingBody, "--path", chat, "-H", "x-tenant: acme", "-H", "x-user: ann")
	if code != 0 || e.First.Does != "admit" || e.Cost.USD != 0.00602 || *e.Cost.Prices != (prices{2.5, 10}) ||
		e.Cost.InputFrom != "counted exactly (o200k)" || e.Cost.OutputFrom != "declared by the request" {
		t.Errorf("code %d, %+v %+v", code, e.First, e.Cost)
	}
	keys := map[string]string{}
	for _, l := range e.Limits {
		keys[l.Tier] = l.Key
	}
	for tier, want := range map[string]string{"user": "acme/ann", "tenant": "acme", "environment": "default, its share of openai *", "provider": "openai *"} {
		if keys[tier] != want {
			t.Errorf("%s: key %q, want %q", tier, keys[tier], want)
		}
	}
	for body, from := range map[string]string{
		`{"model":"claude-x","max_tokens":1,"messages":[]}`: "estimated by family (",
		`{"model":"gpt-4o","messages":[]}`:                  "counted exactly (o200k)",
	} {
		if e, _ := explained(t, body, "--path", chat, "-H", "x-tenant: acme"); !strings.HasPrefix(e.Cost.InputFrom, from) {
			t.Errorf("%s: %+v", body, e.Cost)
		}
	}
	if e, _ := explained(t, `{"model":"gpt-4o","messages":[]}`, "--path", chat); e.Cost.OutputFrom != "output.default of the policy" || e.Cost.Output != 1024 {
		t.Errorf("%+v", e.Cost)
	}
	if e, _ := explained(t, `{"model":"small","messages":[]}`, "--path", chat, "-H", "x-tenant: tiny"); !strings.HasPrefix(e.Cost.OutputFrom, "undeclared:") || e.Cost.Output != 125 {
		t.Errorf("%+v", e.Cost)
	}
}

// What can never fit, or is no request of the policy's, is refused at once, and that is the exit code. Who is not trusted is
// nobody in particular.
func TestExplainRefusals(t *testing.T) {
	for _, row := range []struct{ path, body, reason string }{
		{chat, strings.Replace(greetingBody, "600", "60000", 1), "request_too_large"},
		{"/none/v1/x", greetingBody, "unknown_prefix"},
		{"/openai/v1/new/thing", greetingBody, "not_metered"},
		{chat, "no JSON", "unreadable_body"},
	} {
		if e, code := explained(t, row.body, "--path", row.path, "-H", "x-tenant: acme"); code != 1 || e.First.Does != "deny" || e.First.Reason != row.reason || e.First.Message == "" {
			t.Errorf("%s: code %d, %+v", row.reason, code, e.First)
		}
	}
	if e, _ := explained(t, greetingBody, "--path", chat, "-H", "x-tenant: acme", "--source", "10.0.0.1"); e.Caller.Tenant != "unknown" {
		t.Errorf("%+v", e.Caller)
	}
	policy := write(t, "policy.yaml", explainPolicy)
	for want, args := range map[string][]string{
		"several providers": {"--policy", policy, "-"},
		"write NAME: VALUE": {"--policy", policy, "--path", chat, "-H", "acme", "-"},
		"is no IP address":  {"--policy", policy, "--source", "here", "-"},
		"no such file":      {"--policy", policy, "--path", chat, "/nowhere"},
	} {
		if code, out, errs := weir(t, greetingBody, append([]string{"explain"}, args...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d %s%s", want, code, out, errs)
		}
	}
}

// For people it is the same in words, and without colours where nobody sees them.
func TestExplainText(t *testing.T) {
	code, out, _ := weir(t, greetingBody, "explain", "--policy", write(t, "policy.yaml", explainPolicy), "--path", chat, "-H", "x-tenant: acme", "-")
	for _, want := range []string{"caller    environment production, tenant acme", "output    600 tokens: declared", "tenant       acme", "decision  admit", "such requests; then ", "deny, 429 limit_exceeded"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != 0 || strings.Contains(out, "\x1b") {
		t.Errorf("code %d\n%q", code, out)
	}
}
