// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// A caseTier is a limit in a case's words.
type caseTier struct {
	RPS, RPM, RPH, RPD, TPM, TPH, TPD, ITPM, OTPM, Concurrency *int64

	WindowS       int64               `json:"window_s"`
	LeaseS        int64               `json:"lease_s"` // weir's own is fixed and renewed
	MaxBody       int64               `json:"max_body"`
	Queue         int64               `json:"queue"`
	QueueTimeoutS int64               `json:"queue_timeout_s"`
	AgingS        int64               `json:"aging_s"`
	ByModel       map[string]caseTier `json:"by_model"`
	Scope         string
	Format        string
	Adaptive      *caseAdaptive // of package feedback
	Key           string
}

// A measure says what a case's policy is to have beside the case's own limits.
type caseMeasure struct {
	count  bool     // every request is counted before it leaves, also where an upper bound would do
	models []string // models with a pool of their own
}

// Each call of a case is a tool of its own, with limits that it never meets: what is used of them is what the call is charged.
// The window is a day, so that nothing comes back while the case runs; of limits above 2^31 the count would be rounded.
func (m *caseMeasure) limit() object {
	inFlight := "100000"
	if m.count {
		inFlight = "4" // an upper bound is reserved only while a limit is hardly used
	}
	return object{"rpm": "1000000", "tpm": "1000000", "itpm": "1000000", "otpm": "1000000", "window": "24h", "burst": "100%", "in_flight": inFlight}
}

type object = map[string]any

// Who asks is in headers; who has none is the same tenant and user each time.
const (
	caseUser, caseTenant, caseEnvironment = "someone", "team", "staging"
	caseIDHeader                          = "x-case-call"
)

// policyOf is the policy in which a case's tiers are in force.
func policyOf(tiers []caseTier, path string, m caseMeasure, variant string) ([]byte, error) {
	provider := object{"cluster": "none", "prefix": "/", "dialect": dialectOf(path)}
	limits := object{"tool": object{"default": m.limit()}}
	p := object{
		"apiVersion": "weir/v1", "trust": []string{"all"}, "providers": object{"llm": provider}, "limits": limits,
		"slots": object{"tool": "16384"},
		"who": object{
			"tenant": []string{"header x-team", "header x-tenant", "default " + caseTenant}, "user": []string{"header x-user", "default " + caseUser},
			"environment": []string{"header x-environment", "default " + caseEnvironment},
			"tool":        []string{"header " + caseIDHeader}, "class": []string{"header x-priority", "default interactive"},
		},
	}
	models := object{}
	for _, name := range m.models {
		models[name] = object{"rpm": "1000000", "burst": "100%"}
	}
	for i := range tiers {
		t := &tiers[i]
		provider["dialect"] = cmp.Or(t.Format, provider["dialect"].(string))
		if err := t.add(limits, models, p); err != nil {
			return nil, err
		}
	}
	if len(models) > 0 {
		provider["models"] = models
	}
	switch {
	case strings.Contains(variant, "not declared"):
		provider["prefix"] = "/declared"
	case variant != "":
		return nil, fmt.Errorf("unknown config_variant %q", variant)
	}
	return json.Marshal(p)
}

// caseScopes are the tiers that cases mean; provider is the pool of all its models.
var caseScopes = map[string]string{
	"": "tenant", "tenant": "tenant", "team": "tenant", "org": "tenant", "user": "user", "environment": "environment", "provider": "provider",
	"model": "provider", "global": "provider",
}

// add puts a tier into the policy.
func (t *caseTier) add(limits, models, p object) error {
	for name, of := range t.ByModel {
		l, err := of.limit()
		if err != nil {
			return err
		}
		models["*"+name] = l
	}
	if t.MaxBody > 0 {
		p["body"] = object{"parse": fmt.Sprint(min(max(t.MaxBody, 1<<10), 1<<20))}
	}
	if t.Queue > 0 {
		p["queue"] = object{"entries": fmt.Sprint(t.Queue)}
		p["classes"] = object{"interactive": object{
			"on_limit": "queue", "wait": fmt.Sprint(cmp.Or(t.QueueTimeoutS, 60), "s"), "aging": fmt.Sprint(cmp.Or(t.AgingS, 30), "s"),
		}}
	}
	l, err := t.limit()
	if err != nil || len(l) == 0 {
		return err
	}
	tier, ok := caseScopes[t.Scope]
	if !ok {
		return fmt.Errorf("unknown scope %q", t.Scope)
	}
	if tier == "provider" {
		models["*"] = l
		return nil
	}
	if limits[tier] != nil {
		return fmt.Errorf("two tiers of scope %q", t.Scope)
	}
	limits[tier] = object{"default": l}
	return nil
}

// limit is the limit in the policy's words. All of it may be taken at once, as cases mean it. A limit of 0, which policies do not
// have, is one that is used up: see world.exhaust.
func (t *caseTier) limit() (object, error) {
	l := object{}
	windowed := false
	for name, n := range map[string]*int64{
		"rps": t.RPS, "rpm": t.RPM, "rph": t.RPH, "rpd": t.RPD, "tpm": t.TPM, "tph": t.TPH, "tpd": t.TPD, "itpm": t.ITPM, "otpm": t.OTPM,
	} {
		if n == nil {
			continue
		}
		windowed = true
		name, err := t.windowed(name, l)
		if err != nil {
			return nil, err
		}
		l[name] = fmt.Sprint(max(*n, 1))
	}
	if windowed && l["window"] == nil {
		l["burst"] = "100%"
	}
	if t.Concurrency != nil {
		l["in_flight"] = fmt.Sprint(max(*t.Concurrency, 1))
	}
	return l, nil
}

// windowed gives a limit by the minute the window that a case says; a case that says one means windows that begin and end.
func (t *caseTier) windowed(name string, l object) (string, error) {
	letter, ok := map[int64]string{0: "m", 1: "s", 60: "m", 3600: "h", 86400: "d"}[t.WindowS]
	if !ok || !strings.HasSuffix(name, "m") && t.WindowS > 0 {
		return "", fmt.Errorf("no limit for %s with window_s %d", name, t.WindowS)
	}
	if t.WindowS == 0 {
		return name, nil
	}
	l["window"] = "fixed"
	return name[:len(name)-1] + letter, nil
}

// dialectOf is the dialect of a provider with such paths.
func dialectOf(path string) string {
	plain, _, _ := strings.Cut(path, "?")
	for _, d := range []struct {
		dialect string
		paths   *regexp.Regexp
	}{
		{"anthropic", regexp.MustCompile(`/messages(/|$)`)},
		{"gemini", regexp.MustCompile(`^/v1(beta|alpha)\w*/|:\w*(generateContent|GenerateContent|countTokens|embedContent)`)},
		{"bedrock", regexp.MustCompile(`^/model/`)},
		{"ollama", regexp.MustCompile(`^/api/(chat|generate|embed)`)},
		{"cohere", regexp.MustCompile(`^/v2/`)},
		{"mistral", regexp.MustCompile(`/fim/completions$`)},
	} {
		if d.paths.MatchString(plain) {
			return d.dialect
		}
	}
	return "openai"
}
