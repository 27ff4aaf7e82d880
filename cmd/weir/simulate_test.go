// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirproxy/weir/policy/sim"
)

// simulate runs weir simulate and gives its exit code and what it wrote.
func simulate(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), append([]string{"simulate"}, args...), streams{strings.NewReader(stdin), &o, &e})
	return code, o.String(), e.String()
}

// What is asked for wrongly exits with 2 and a hint, what does not hold with 1.
func TestSimulateWords(t *testing.T) {
	bad := "tenant acme: tpm 600\nat 0s acme input 1\n  expect refused\n"
	for _, row := range []struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		{"", nil, 0, "agent-burst"},
		{"", nil, 0, "window-edge  Never more than the limit in ANY window"},
		{"", []string{"starvation"}, 0, "all 7 checks hold"},
		{"", []string{"agent-burst", "--seed", "7", "--jitter", "full"}, 0, "Seed 7; all 9 checks hold"},
		{"", []string{"burst"}, 0, "limit_exceeded tenant tpm wait 15s"},
		{"", []string{"burst", "--print"}, 0, "tenant acme: tpm 6_000"},
		{"", []string{"starvation", "--print"}, 2, "there are all-or-none, burst"},
		{"", []string{"starvatoin"}, 2, "did you mean starvation?"},
		{"", []string{"no-such-thing-at-all"}, 2, "weir simulate lists what there is"},
		{"", []string{"burst", "--jitter", "some"}, 2, "write additive, equal or full"},
		{"", []string{"burst", "--seed", "x"}, 2, "--seed"},
		{"", []string{"burst", "--svg", "/nowhere/x.svg"}, 2, "/nowhere/x.svg"},
		{"", []string{"."}, 2, "cannot read ."},
		{"tenant acme: tpm -1\n", []string{"-"}, 2, `-:1: "-1" is no count`},
		{bad, []string{"-"}, 1, "1 of 1 checks do not hold: -:3"},
		{bad, []string{"-", "--json"}, 1, `"ok":false`},
		{strings.Repeat("#", maxScenario+1), []string{"-"}, 2, "longer than 1 MiB"},
	} {
		code, out, errs := simulate(t, row.stdin, row.args...)
		if code != row.code || !strings.Contains(out+errs, row.says) {
			t.Errorf("weir simulate %v: exit code %d, want %d and %q:\n%s%s", row.args, code, row.code, row.says, out, errs)
		}
	}
}

// The JSON is the contract of the command line, and the same seed gives the same bytes.
func TestSimulateJSON(t *testing.T) {
	_, out, _ := simulate(t, "", "agent-burst", "--json", "--seed", "3")
	var got struct {
		Seed int
		Rows []map[string]any
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"row": "A", "rejections": 25.0, "retries": 0.0, "failed": 25.0, "total_s": 0.12, "critical_s": nil, "longest_normal_wait_s": nil}
	for name, v := range want {
		if have, ok := got.Rows[0][name]; !ok || !reflect.DeepEqual(have, v) {
			t.Errorf("%s is %v, want %v", name, have, v)
		}
	}
	if got.Seed != 3 || len(got.Rows) != 9 {
		t.Errorf("seed %d, %d rows", got.Seed, len(got.Rows))
	}
	_, again, _ := simulate(t, "", "agent-burst", "--json", "--seed", "3")
	_, other, _ := simulate(t, "", "agent-burst", "--json", "--seed", "4")
	if out != again || out == other {
		t.Error("a seed does not say it all, or nothing")
	}
}

// The SVG is XML with a curve for each line, whatever the names are.
func TestSimulateSVG(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	text := "tenant <&'>: tpm 6_000\nat 0s <&'> input 100\nat 9s <&'> input 100\n"
	if code, _, errs := simulate(t, text, "-", "--svg", file); code != 0 {
		t.Fatal(errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	curves := 0
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			curves++
		}
	}
	if curves != 3 {
		t.Errorf("%d curves, want left, counted and limit", curves)
	}
}

// A chart in the terminal has a row for each line, on one scale; one without an extent is left out.
func TestSparks(t *testing.T) {
	c := sim.Chart{Title: "t", X: "s", Y: "calls", Lines: []sim.Line{
		{Name: "up", Points: []sim.Point{{X: 0, Y: 0}, {X: 5, Y: 50}, {X: 10, Y: 100}}}, {Name: "short", Points: []sim.Point{{X: 0, Y: 100}, {X: 4, Y: 100}}},
	}}
	lines := strings.Split(sparks(c), "\n")
	if len(lines) != 5 || lines[0] != "t (calls from 0 to 100)" || !strings.HasSuffix(lines[1], "▄█") || len([]rune(lines[2])) > 6+sparkWidth/2 {
		t.Errorf("%q", lines)
	}
	if s := sparks(sim.Chart{Lines: []sim.Line{{Points: []sim.Point{{X: 1, Y: 1}}}}}); s != "" {
		t.Errorf("of one point it draws %q", s)
	}
	for _, r := range [][2]float64{{0, 18.43}, {0, 30}, {-2000, 200_000}, {0, 1e-3}, {59, 123}} {
		if n := len(ticks(r[0], r[1])); n < 3 || n > 11 {
			t.Errorf("%v has %d ticks", r, n)
		}
	}
	if s := string(svgOf(nil)); !strings.HasSuffix(s, "</svg>\n") {
		t.Error(s)
	}
}
