// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// metricsOf gives the metrics of docs/reference.md, of which another test says that they are those of the code, with their labels.
func metricsOf(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("../docs/reference.md")
	must(t, err)
	m := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (weir_[a-z_, ]+) \| [EC] \| ([a-z_, ]*)\|`).FindAllStringSubmatch(string(b), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			m[name] = strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	if len(m) < 40 {
		t.Fatalf("only %d metrics", len(m))
	}
	return m
}

// promtool finds the tool of that name.
func promtool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	path := filepath.Join("..", ".tools", "page", "promtool")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("make test fetches promtool: %v", err)
	}
	return path
}

type rule struct {
	Alert, Expr string
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	b, err := os.ReadFile("prometheus/alerts.yaml")
	must(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	must(t, yaml.Unmarshal(b, &file))
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// Each alert fires for what it is about, and not for what it is not; docs/monitor.md says what to do then.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "prometheus/alerts.yaml"}, {"test", "rules", "prometheus/alerts_test.yaml"}} {
		if out, err := exec.Command(promtool(t), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	tests, err := os.ReadFile("prometheus/alerts_test.yaml")
	must(t, err)
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert   string `yaml:"alertname"`
				Expects []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	must(t, yaml.Unmarshal(tests, &file))
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Expects) > 0
		}
	}
	docs, err := os.ReadFile("../docs/monitor.md")
	must(t, err)
	for _, r := range rules(t) {
		if !fires[r.Alert] {
			t.Errorf("%s: no test in which it fires", r.Alert)
		}
		if !strings.Contains(string(docs), "| "+r.Alert+" |") {
			t.Errorf("%s is not in docs/monitor.md", r.Alert)
		}
		checkExpr(t, r.Alert, r.Expr)
	}
	for _, name := range regexp.MustCompile(`(?m)^\| (Weir\w+) \|`).FindAllStringSubmatch(string(docs), -1) {
		if !slices.ContainsFunc(rules(t), func(r rule) bool { return r.Alert == name[1] }) {
			t.Errorf("docs/monitor.md has %s, the rules have not", name[1])
		}
	}
}

// The dashboard asks for nothing that is not there, in words that Prometheus understands.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("grafana/weir.json")
	must(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal(b, &board))
	var records strings.Builder
	records.WriteString("groups:\n- name: dashboard\n  rules:\n")
	ids, n := map[int]bool{}, 0
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has its id", p.Title)
		}
		ids[p.ID] = true
		if (len(p.Targets) == 0) != (p.Type == "row") {
			t.Errorf("%s: %d expressions", p.Title, len(p.Targets))
		}
		for _, target := range p.Targets {
			checkExpr(t, p.Title, target.Expr)
			expr := strings.NewReplacer("$__rate_interval", "5m", "$tier", ".*").Replace(target.Expr)
			fmt.Fprintf(&records, "  - {record: 'r%d', expr: %q}\n", n, expr)
			n++
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must(t, os.WriteFile(file, []byte(records.String()), 0o600))
	if out, err := exec.Command(promtool(t), "check", "rules", file).CombinedOutput(); err != nil || !strings.Contains(string(out), fmt.Sprintf("%d rules found", n)) {
		t.Errorf("%v\n%s", err, out)
	}
}

var (
	inQuotes = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	grouping = regexp.MustCompile(`\b(by|ignoring|on|without)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`[a-z]\w*_\w+`)
)

// checkExpr looks whether an expression is of metrics and labels that there are.
func checkExpr(t *testing.T, where, expr string) {
	t.Helper()
	metrics, labels := metricsOf(t), []string{}
	text := inQuotes.ReplaceAllString(expr, `""`)
	plain := grouping.ReplaceAllString(selector.ReplaceAllString(text, "$1"), "")
	for _, name := range word.FindAllString(plain, -1) {
		if slices.Contains([]string{"group_left", "clamp_min", "rate_interval", "__rate_interval"}, name) {
			continue
		}
		of, ok := metrics[name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		labels = append(labels, of...)
	}
	if len(labels) == 0 && !strings.Contains(plain, "weir_") {
		t.Errorf("%s is of no metric: %s", where, expr)
	}
	for _, s := range selector.FindAllStringSubmatch(text, -1) {
		for _, label := range regexp.MustCompile(`(\w+)\s*[!=]`).FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(metrics[s[1]], label[1]) {
				t.Errorf("%s: %s has no label %s", where, s[1], label[1])
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(text, -1) {
		for _, label := range strings.FieldsFunc(g[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(labels, label) {
				t.Errorf("%s: no metric of it has a label %s", where, label)
			}
		}
	}
}
