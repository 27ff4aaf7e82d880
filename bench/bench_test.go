// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Each peer starts, and each table has a row for each that belongs into it, without a cell that is empty for no reason.
func TestShortFormHasAllRows(t *testing.T) {
	b := &bench{report: &report{}, root: "..", tools: "../.tools/peers", short: true}
	for _, file := range []string{"../bin/weir", "../.tools/envoy/bin/envoy", b.tools + "/ratelimit", b.tools + "/hardcap/bin/hardcap"} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%v: make bench-test has it made first", err)
		}
	}
	b.self = filepath.Join(t.TempDir(), "bench") // a test's own binary is no provider
	if out, err := exec.Command("go", "build", "-o", b.self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := b.measure(context.Background(), "", false)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"direct", "plain Envoy", "plain Envoy, again", "local_ratelimit", "ratelimit, calls", "ratelimit, tokens when done", "hardcap", "hardcap, p95", "weir"}
	tokenizers := []string{"o200k", "claude", "gemini", "llama"}
	for _, want := range []struct {
		title string
		rows  []string
	}{
		{"Latency of a chat of 2 KB", all}, {"Latency of a chat of 32 KB", all}, {"Latency of a chat of 256 KB", all},
		{"Latency of a stream's first byte, 2 KB", all}, {"Latency of each chunk of a stream, from the provider to the client", all},
		{"Throughput, 32 connections, 2 KB", all}, {"Over-admission", all[3:]}, {"Under-use", all[3:]}, {"What a denial carries", all[3:]},
		{"A limit is cut", all[3:]}, {"The store is gone for 1s", all[4:]}, {"How far estimates miss", tokenizers},
	} {
		_, table, found := strings.Cut(text, "\n### "+want.title+"\n")
		if !found {
			t.Errorf("there is no table %q", want.title)
		}
		table, _, _ = strings.Cut(table, "\n### ")
		for _, row := range want.rows {
			if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \|.*\d.*\|$|^\| ` + regexp.QuoteMeta(row) + ` \| a restart`).MatchString(table) {
				t.Errorf("%s: %s has no figures:\n%s", want.title, row, table)
			}
		}
	}
}

func TestScriptReachesTheProvider(t *testing.T) {
	want := script{tag: "burst-3", prompt: 12, completion: 34, delay: 300 * time.Millisecond, gap: 2 * time.Millisecond, chunks: 5}
	if got := parseScript(chat(want, 100, true, prose(50))); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := parseScript([]byte(`{"messages":[]}`)); got.tag != "" || got.completion == 0 {
		t.Errorf("without a script: %+v", got)
	}
}

func TestOutcomeCountsTheWorstMinute(t *testing.T) {
	entries := []entry{{50_000, 100}, {1000, 100}, {1999, 100}, {2000, 100}, {61_000, 1000}, {62_500, 1}, {110_001, 10}}
	o := &outcome{}
	o.count(entries, time.UnixMilli(50_000))
	// 2000 to 61,999: 100+100+1000; 50,000 to 109,999: 100+1000+1, 61,000 to 120,999: 1011, 1999 on: 1300
	if o.second != 200 || o.minute != 1300 || o.total != 100+1000+1+10 {
		t.Errorf("got %+v", o)
	}
}

func TestLineFits(t *testing.T) {
	a, b, worst := line([]float64{0, 1, 2, 3}, []float64{1, 3, 5, 7})
	if math.Abs(a-1) > 1e-9 || math.Abs(b-2) > 1e-9 || worst > 1e-9 {
		t.Error(a, b, worst)
	}
	if _, _, worst = line([]float64{0, 1, 2}, []float64{0, 3, 0}); math.Abs(worst-2) > 1e-9 {
		t.Error(worst)
	}
}

func TestFleetRunIsRead(t *testing.T) {
	out := fmt.Sprintf("50 Envoys have their share 900ms after the last one has started.\n\n| without a change | |\n|---|---|\n| cores of the control plane | 0.07 |\n| memory, MiB | 44 |\n| reports per second | 48 |\n| pushes per second | 49 |\n| bytes of shares per second | 7718 |\n\n| a cut by half, acknowledged | p50 | p99 | last | of |\n|---|---|---|---|---|\n| from when the control plane has taken the policy | 79ms | 1.088s | 2s | 50 |\n| from when the file was written | 465ms | 474ms | 474ms | 50 |\n\nNot within 15 s: %d of 50. Memory at the end: 46 MiB.\n", 3)
	if got, want := parseFleetRun(50, 2, out), (fleetRun{50, 2, 0.07, 44, 48, 7718, 79, 1088, 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What has carried malware is installed for nobody who has not asked for it, and nothing of it floats.
func TestLiteLLMIsPinnedAndOff(t *testing.T) {
	get, err := os.ReadFile("get.sh")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(get), `if [ -n "${LITELLM:-}" ]; then`)
	if strings.Contains(before, "litellm.txt") {
		t.Error("get.sh installs LiteLLM by default")
	}
	for _, file := range []string{"litellm.txt", "hardcap.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^[a-z].*(\n    --hash.*)*`).FindAllString(string(text), -1) {
			if !regexp.MustCompile(`^[a-z0-9.-]+==[0-9a-z.]+ \\\n    --hash=sha256:[0-9a-f]{64}`).MatchString(line) {
				t.Errorf("%s: %q is not pinned", file, line)
			}
		}
	}
}
