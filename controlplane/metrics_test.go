// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/envoy/envoytest"
)

// documented gives the metrics of a table in docs/reference.md, with their labels: those of Envoy, or of the control plane.
func documented(t *testing.T, of string) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../docs/reference.md")
	must(t, err)
	_, section, _ := strings.Cut(string(b), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	m := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "weir_") || strings.TrimSpace(cells[2]) != of {
			continue
		}
		for _, name := range strings.Split(cells[1], ",") {
			m[strings.TrimSpace(name)] = strings.TrimSpace(cells[3])
		}
	}
	return m
}

// The reference has each metric of the code with its labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	compare(t, documented(t, "C"), func(yield func(name, labels string)) {
		for _, f := range families {
			yield(f.name, strings.Join(f.labels, ", "))
		}
	})
	source, err := os.ReadFile("../filter/metrics.go")
	must(t, err)
	constants := regexp.MustCompile(`(?m)^\tmetric\w+ += "(weir_\w+)" +// (.+)$`).FindAllStringSubmatch(string(source), -1)
	if n := strings.Count(string(source), `"weir_`); n != len(constants) {
		t.Errorf("%d of %d names of metrics have their labels beside them", len(constants), n)
	}
	compare(t, documented(t, "E"), func(yield func(name, labels string)) {
		for _, c := range constants {
			labels := ""
			if c[2] != "none" {
				labels = "weir_" + strings.ReplaceAll(c[2], ", ", ", weir_")
			}
			yield(c[1], labels)
		}
	})
}

func compare(t *testing.T, docs map[string]string, code func(func(name, labels string))) {
	t.Helper()
	code(func(name, labels string) {
		want, ok := docs[name]
		if delete(docs, name); !ok || want != labels {
			t.Errorf("%s with labels %q: docs/reference.md has %q (%v)", name, labels, want, ok)
		}
	})
	for name := range docs {
		t.Errorf("docs/reference.md has %s, the code has not", name)
	}
}

// All metrics are there when all there is is there, and are named as is the custom.
func TestMetrics(t *testing.T) {
	ca, dir := envoytest.NewCA(t), t.TempDir()
	ca.Issue(dir, "weir.test")
	kept, err := store.Open("bolt:" + filepath.Join(t.TempDir(), "state"))
	must(t, err)
	defer kept.Close()
	r := newPageRig(t)
	r.join("egress-1", 5)
	r.eventually("used", func(st Status) bool {
		return len(st.Fleet.Quotas) >= 7 && slices.ContainsFunc(r.s.board.estimates.rows(r.s.policy()), func(e Estimate) bool { return e.Named })
	})
	guard, err := access.New(access.Files{Cert: dir + "/tls.crt", Key: dir + "/tls.key"}, nil)
	must(t, err)
	kinds := run(t, good, func(c *Config) { c.Store, c.Access = kept, guard })
	for kinds.s.policy() == nil {
		time.Sleep(time.Millisecond)
	}
	found := append(gather(t, r.s), gather(t, kinds.s)...)
	for _, f := range families {
		if !slices.ContainsFunc(found, func(m *dto.MetricFamily) bool { return m.GetName() == f.name }) {
			t.Errorf("no %s", f.name)
		}
	}
	for name := range documented(t, "E") {
		found = append(found, &dto.MetricFamily{Name: &name, Help: &name, Type: dto.MetricType_COUNTER.Enum()})
	}
	problems, err := promlint.NewWithMetricFamilies(found).Lint()
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, m := range found {
		for _, v := range m.Metric {
			for _, l := range v.Label {
				if strings.Contains(l.GetValue(), "#") {
					t.Errorf("%s has somebody in its labels whom the policy does not name: %v", m.GetName(), v.Label)
				}
			}
		}
	}
}

func gather(t *testing.T, s *Server) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(s))
	found, err := registry.Gather()
	must(t, err)
	return found
}

// Over HTTP there is no more and no less than that, beside Go's own.
func TestMetricsOverHTTP(t *testing.T) {
	p := run(t, good, nil)
	p.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	resp, err := http.Get(p.url + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	found, err := parser.TextToMetricFamilies(resp.Body)
	must(t, err)
	docs := documented(t, "C")
	for name := range found {
		if _, ok := docs[name]; !ok && strings.HasPrefix(name, "weir_") {
			t.Errorf("%s is not documented", name)
		}
	}
	if found["weir_controlplane_nacks_total"] == nil || found["go_goroutines"] == nil {
		t.Errorf("got %d metrics", len(found))
	}
}
