// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

const replayPolicy = `apiVersion: weir/v1
trust: [all]
log: {admit: info, deny: info, caller: true}
providers: {openai: {upstream: "http://openai.test", models: {"*": {tpm: 30_000}}}}
limits:
  tenant: {default: {tpm: 4000}, big: {tpm: 12_000}}
  user: {default: {tpm: 3000}}
`

// What an Envoy decided under a policy, a replay of its log under the same policy decides again, and under half of it no less is
// refused.
func TestReplayDecidesAsTheFilterDid(t *testing.T) {
	r, err := policyfile.Parse("policy.yaml", []byte(replayPolicy))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		p, err := filtertest.NewProcess(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Configure(r.JSON); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		denied := 0
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			p.Sleep(time.Duration(rapid.IntRange(0, 8000).Draw(t, "ms")) * time.Millisecond)
			output := rapid.IntRange(1, 1200).Draw(t, "output")
			x := p.Worker(0).Open(filtertest.Request{
				Path: chat, Body: fmt.Appendf(nil, `{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, output),
				Headers: [][2]string{{"x-tenant", rapid.SampledFrom([]string{"a", "b c", "big"}).Draw(t, "tenant")}, {"x-user", rapid.SampledFrom([]string{"u", "v"}).Draw(t, "user")}},
			})
			if x.Sent {
				x.Answer(200, fmt.Sprintf(`{"usage":{"prompt_tokens":8,"completion_tokens":%d}}`, rapid.IntRange(1, output).Draw(t, "used")))
			} else {
				denied++
				x.Close()
			}
			fmt.Fprintf(&log, "[%s][7][info][wasm] wasm log: %s\n", p.Wall.Format("2006-01-02 15:04:05.000"), p.Logs[len(p.Logs)-1])
		}
		all, skipped, err := readDecided(strings.NewReader(log.String()))
		if err != nil || skipped > 0 {
			t.Fatal(skipped, err)
		}
		got := replay(r.Policy, all)
		if got.RefusedThen != denied || got.RefusedNow != denied || got.NewlyRefused+got.NewlyPassed+got.NoCost+got.NoProvider > 0 {
			t.Fatalf("%d denied; replayed %+v\n%s", denied, got, log.String())
		}
		if n := 0; denied > 0 {
			for _, by := range got.By {
				n += by.Requests
			}
			if n != denied {
				t.Fatalf("%+v", got.By)
			}
		}
	})
}

// The sizes are those that looking at every minute and every limit gives.
func TestSizing(t *testing.T) {
	tokens := func(a asked) int64 { return a.tokens }
	rapid.Check(t, func(t *rapid.T) {
		var all []asked
		at := int64(time.Hour)
		for range rapid.IntRange(1, 25).Draw(t, "n") {
			at += int64(rapid.IntRange(0, 50).Draw(t, "s")) * int64(time.Second)
			all = append(all, asked{at, 1, int64(rapid.IntRange(1, 30).Draw(t, "tokens"))})
		}
		got := spreadOf(all, policy.TPM, tokens)
		most, minutes := int64(0), map[int64]int64{}
		for _, a := range all {
			n := int64(0)
			for _, b := range all {
				if b.at > a.at-int64(time.Minute) && b.at <= a.at {
					n += b.tokens
				}
			}
			most = max(most, n)
			minutes[a.at/int64(time.Minute)] += a.tokens
		}
		var sums []int64
		for _, n := range minutes {
			sums = append(sums, n)
		}
		slices.Sort(sums)
		least := most
		for ; !admits(all, policy.TPM, tokens, least); least++ {
		}
		if want := (spread{sums[(len(sums)-1)/2], got.P95, sums[len(sums)-1], most, least}); got != want || got.P95 < got.P50 || got.P95 > got.P99 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestLogLines(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for line, want := range map[string]*decided{
		`{"time":"2026-11-30T12:00:00.000Z","duration":1500,"decision":"admit","weir.tenant":"a","weir_user":"-","input":"8","x":null,"y":[1]}`: {
			noon, 1500 * time.Millisecond, map[string]string{"time": "2026-11-30T12:00:00.000Z", "duration": "1500", "decision": "admit", "tenant": "a", "input": "8"}},
		`{"timestamp":1796040000,"weir.decision":"deny"}`: {noon, 0, map[string]string{"timestamp": "1796040000", "decision": "deny"}},
		`[2026-11-30 12:00:00.000][1][info][wasm] x: weir decision=deny tenant="a b=\"c" status=429`: {
			noon, 0, map[string]string{"decision": "deny", "tenant": `a b="c`, "status": "429"}},
		`weir decision=deny status=429`:    nil, // nobody knows when
		`{"time":"2026-11-30T12:00:00Z"}`:  nil,
		`{"time":`:                         nil,
		`[info] something else`:            nil,
		`{"time":1e300,"decision":"deny"}`: nil,
	} {
		all, skipped, err := readDecided(strings.NewReader(line + "\n\n"))
		switch {
		case err != nil:
			t.Error(err)
		case want == nil && (len(all) != 0 || skipped != 1):
			t.Errorf("%s: read %+v", line, all)
		case want != nil && (len(all) != 1 || !all[0].at.Equal(want.at) || all[0].duration != want.duration || !reflect.DeepEqual(all[0].fields, want.fields)):
			t.Errorf("%s: read %+v", line, all)
		}
	}
}

func FuzzLogLine(f *testing.F) {
	f.Add(`{"time":"2026-11-30T12:00:00Z","decision":"admit","output":"5"}`)
	f.Add(`[2026-11-30 12:00:00.000] weir decision=deny tenant="a\"b" need=5`)
	f.Fuzz(func(t *testing.T, line string) {
		all, _, err := readDecided(strings.NewReader(line))
		if err != nil {
			t.Skip()
		}
		for i := range all {
			if a, b, _ := tokensOf(&all[i]); a.Input < 0 || a.Output < 0 || b.Input < 0 || b.Output < 0 {
				t.Errorf("%+v", all[i])
			}
		}
	})
}

// A stricter policy refuses more, and says which limit and what would do; calls in flight count for as long as they last.
func TestReplayCommand(t *testing.T) {
	var log strings.Builder
	for i := range 10 {
		fmt.Fprintf(&log, `{"time":"2026-11-30T12:00:0%d.000Z","duration":"5000","decision":"admit","provider":"openai","model":"gpt-4o","tenant":"a","user":"u","how":"exact","input":"10","output":"90","charged_input":"10","charged_output":"90"}`+"\n", i)
	}
	log.WriteString("something else\n" + `{"time":"2026-11-30T12:00:30Z","decision":"deny","reason":"limit_exceeded","dimension":"rpm","provider":"gone"}` + "\n")
	policy := func(limit string) string {
		return write(t, "policy.yaml", "apiVersion: weir/v1\nproviders: {openai: {upstream: \"http://x.test\", models: {\"*\": {"+limit+"}}}}\n")
	}
	for _, row := range []struct {
		limit   string
		refused int
		by      string
	}{
		{"tpm: 4000", 0, ""}, {"tpm: 500, burst: 100%", 5, "openai * tpm 500"}, {"in_flight: 2", 6, "openai * in_flight 2"}, {"rpm: 3, burst: 100%", 7, "openai * rpm 3"},
	} {
		code, out, errs := weir(t, log.String(), "replay", "-", "--policy", policy(row.limit), "--json")
		var got replayed
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			t.Fatal(code, err, errs)
		}
		by := ""
		if len(got.By) > 0 {
			by = fmt.Sprintf("%s %s %d", got.By[0].Key, got.By[0].Dimension, got.By[0].Limit)
		}
		if got.RefusedNow != row.refused || got.NewlyRefused != row.refused || by != row.by || got.NoProvider != 1 || got.Skipped != 1 || got.Requests != 11 || got.RefusedThen != 1 {
			t.Errorf("%s: %+v", row.limit, got)
		}
		if len(got.Sizes) != 2 || got.Sizes[0].TPM.Max != 1000 || got.Sizes[0].RPM.P50 != 10 || got.Sizes[1].User != "u" || got.Sizes[0].TPM.Enough < 1000 {
			t.Errorf("%+v", got.Sizes)
		}
	}
	_, out, _ := weir(t, log.String(), "replay", "-", "--policy", policy("rpm: 3"))
	for _, want := range []string{"11 requests from 2026-11-30T12:00:00Z", "provider", "rpm", "a       u           10    1000"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code, _, errs := weir(t, "nothing\n", "replay", "-", "--policy", policy("rpm: 3")); code != exitUsage || !strings.Contains(errs, "docs/operate.md") {
		t.Error(code, errs)
	}
}
