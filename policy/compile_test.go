// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func compiled(t testing.TB, json string) *Policy {
	t.Helper()
	s, err := Decode([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// No bytes make decoding or compiling panic; what compiles can be written and read again, and gives paths.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h","models":{"*":{"tpm":"1","window":"10s","burst":"25%"}}}},"limits":{"user":{"default":{"in_flight":"4"}},"environment":{"ci":{"share":"20%"}}},"who":{"tenant":["header x"]}}`))
	f.Add([]byte(`{"apiVersion":"weir/v1","providers":{"a":{"cluster":"c","dialect":"generic","unmetered":["*"]}},"trust":["all","10.0.0.0/8"],"slots":{"user":"64"},"fleet":{"jitter":"0s"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsSlowly(t, data)
		s, err := Decode(data)
		if err != nil {
			return
		}
		p, err := Compile(s)
		if err != nil {
			return
		}
		rewrite := func(s *Spec) ([]byte, *Spec) {
			b, err := json.Marshal(s) // as Encode does, which is not built for the filter
			if err != nil {
				t.Fatal(err)
			}
			again, err := Decode(b)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			return b, again
		}
		_, once := rewrite(s) // drops what is empty
		b, twice := rewrite(once)
		if last, _ := rewrite(twice); !bytes.Equal(b, last) {
			t.Fatalf("%s became %s", b, last)
		}
		var path Path
		for _, pr := range p.Providers {
			m, _ := pr.Models.Lookup("gpt-4o")
			p.Path(&path, m, &Caller{Environment: "ci", Tenant: "a", User: "u", Tool: "t", Base: "default"})
			p.OutputBound(&path, m, 10, -1)
		}
	})
}

// The longest prefix that ends at a slash decides.
func TestProviderOf(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"a":{"cluster":"c","dialect":"generic","prefix":"/v1"},"b":{"cluster":"c","dialect":"generic","prefix":"/v1/b"},"c":{"cluster":"c","dialect":"generic","prefix":"/"}}}`)
	for path, want := range map[string]string{"/v1": "a ", "/v1/x": "a /x", "/v1/b": "b ", "/v1/b?q": "b ?q", "/v1/bb": "a /bb", "/v2": "c /v2", "/": "c /"} {
		pr, rest := p.ProviderOf(path)
		if got := pr.Name + " " + rest; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// An environment's share is of each provider model's limits; a default entry is shared by all that have none of their own.
func TestEnvironments(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","providers":{"openai":{"upstream":"https://h","models":{"m":{"tpm":"1000","rpm":"10","in_flight":"10"}}}},
		"limits":{"environment":{"ci":{"share":"20%"},"default":{"share":"50%","tpm":"300"}}}}`)
	m, _ := p.Providers[0].Models.Lookup("m")
	limits := func(environment string) (tpm []int64, keys []Key) {
		var path Path
		p.Path(&path, m, &Caller{Environment: environment})
		for _, s := range path.Steps[:path.Len] {
			keys = append(keys, s.Key)
			for _, meter := range s.Limit.Meters {
				if meter.Dimension == TPM {
					tpm = append(tpm, meter.Limit())
				}
			}
		}
		return tpm, keys
	}
	if tpm, _ := limits("ci"); len(tpm) != 2 || tpm[0] != 200 || tpm[1] != 1000 {
		t.Errorf("ci: %v", tpm)
	}
	tpm, keys := limits("dev")
	if len(tpm) != 3 || tpm[0] != 300 || tpm[1] != 500 || tpm[2] != 1000 {
		t.Errorf("dev: %v", tpm)
	}
	if _, other := limits("staging"); other[0] != keys[0] || other[1] != keys[1] {
		t.Error("dev and staging do not share what default has")
	}
}

// window: 10s holds the same rate over ten seconds; bursts and small numbers come out as documented.
func TestNewMeter(t *testing.T) {
	for _, row := range []struct {
		spec         MeterSpec
		limit, burst int64
		window       time.Duration
	}{
		{MeterSpec{Dimension: TPM, Limit: 10_000}, 10_000, 2500, time.Minute},
		{MeterSpec{Dimension: TPM, Limit: 10_000, Window: 10 * time.Second}, 1666, 417, 10 * time.Second},
		{MeterSpec{Dimension: RPM, Limit: 1}, 1, 1, time.Minute},
		{MeterSpec{Dimension: RPM, Limit: 3, Window: time.Second}, 1, 1, time.Second},
		{MeterSpec{Dimension: TPM, Limit: 10_000, Burst: 50_000}, 10_000, 10_000, time.Minute},
		{MeterSpec{Dimension: TPM, Limit: 10_000, BurstShare: Whole / 2}, 10_000, 5000, time.Minute},
		{MeterSpec{Dimension: TPM, Limit: 60_000, Kind: Continuous, Jitter: 100 * time.Millisecond}, 60_000, 14_900, time.Minute},
		{MeterSpec{Dimension: RPS, Limit: MaxUnits, Window: MaxWindow}, MaxUnits - MaxUnits%(1+MaxUnits>>31), 0, MaxWindow},
	} {
		m := NewMeter(row.spec)
		if m.Limit() != row.limit || m.Window() != row.window || row.burst > 0 && m.Burst() != row.burst {
			t.Errorf("%+v: %d in %v, burst %d; want %d, %d", row.spec, m.Limit(), m.Window(), m.Burst(), row.limit, row.burst)
		}
	}
}

// What an undeclared output reserves never refuses a request that would fit an empty window, and leaves room for others.
func TestOutputBound(t *testing.T) {
	p := compiled(t, `{"apiVersion":"weir/v1","output":{"default":"500"},"providers":{"openai":{"upstream":"https://h","models":{"m":{"tpm":"1000","otpm":"300","max_output":"400"}}}},"limits":{"tenant":{"small":{"tpm":"100"}}}}`)
	m, _ := p.Providers[0].Models.Lookup("m")
	for _, row := range []struct {
		tenant                string
		model                 *Model
		input, declared, want int64
	}{
		{"a", nil, 10, -1, 500}, {"a", m, 10, -1, 75}, {"a", m, 950, -1, 50}, {"a", m, 2000, -1, 0},
		{"a", m, 10, 5000, 5000}, {"a", m, 10, 0, 0}, {"small", m, 10, -1, 25}, {"small", nil, 10, -1, 25}, {"small", nil, 90, -1, 10},
	} {
		var path Path
		p.Path(&path, row.model, &Caller{Tenant: row.tenant})
		if got := p.OutputBound(&path, row.model, row.input, row.declared); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// What is learned of outputs takes the place of what is declared, but never goes above it or above any other bound.
func TestLearnedOutput(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","output":{"default":"500"%s},"providers":{"openai":{"upstream":"https://h","models":{"m":{"tpm":"1000","max_output":"400"}}}}}`
	for _, row := range []struct {
		reserve                     string
		input, declared, long, want int64
	}{
		{"", 10, 2000, 90, 2000}, {`,"reserve":"declared"`, 10, -1, 90, 250},
		{`,"reserve":"learned"`, 10, 2000, 90, 90}, {`,"reserve":"learned"`, 10, 50, 90, 50}, {`,"reserve":"learned"`, 10, 2000, 0, 2000},
		{`,"reserve":"learned"`, 10, -1, 90, 90}, {`,"reserve":"learned"`, 10, -1, 4000, 400}, {`,"reserve":"learned"`, 950, -1, 90, 50},
		{`,"reserve":"learned"`, 10, -1, 0, 250}, {`,"reserve":"learned"`, 10, 0, 90, 0},
	} {
		p := compiled(t, fmt.Sprintf(policy, row.reserve))
		m, _ := p.Providers[0].Models.Lookup("m")
		var path Path
		p.Path(&path, m, &Caller{Tenant: "a"})
		if got := p.LearnedOutput(&path, m, row.input, row.declared, row.long); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	var p Patterns[string]
	for _, s := range []string{"*", "gpt-*", "gpt-4o*", "*-mini", "gpt-4o", "a*b*c"} {
		p.Add(s, s)
	}
	for name, want := range map[string]string{"gpt-4o": "gpt-4o", "gpt-4o-2024": "gpt-4o*", "gpt-5": "gpt-*", "o1-mini": "*-mini", "": "*", "abc": "a*b*c", "axbxc": "a*b*c", "acb": "*"} {
		if got, ok := p.Lookup(name); !ok || got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
