// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestParseFail(t *testing.T) {
	const text = "429:0.1,503:0.05,reset:0.01,slow:2s:0.1,quota:1,cut:0"
	rules, err := ParseFail(" 429:0.1, 503:0.05,reset:0.01,slow:2s:0.1,,quota:1,cut:0")
	if err != nil {
		t.Fatal(err)
	}
	want := []FailRule{
		{Kind: "status", Status: 429, Probability: 0.1}, {Kind: "status", Status: 503, Probability: 0.05},
		{Kind: "reset", Probability: 0.01}, {Kind: "slow", Delay: 2 * time.Second, Probability: 0.1},
		{Kind: "quota", Probability: 1}, {Kind: "cut"},
	}
	if !reflect.DeepEqual(rules, want) {
		t.Errorf("%+v", rules)
	}
	if got := formatFail(rules); got != text {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"429", "429:2", "429:x", "429:NaN", "200:0.1", "slow:0.1", "slow:x:0.1", "slow:-1s:0.1", "what:0.1", ":"} {
		if _, err := ParseFail(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func TestParseUsage(t *testing.T) {
	for _, text := range []string{"full", "0.05", "1.5", "none", "null", "zero", "negative", "huge"} {
		u, err := ParseUsage(text)
		if err != nil || u.String() != text {
			t.Errorf("%q: %v, %v", text, u, err)
		}
	}
	for _, bad := range []string{"0", "-1", "NaN", "1e9", "absurd"} {
		if _, err := ParseUsage(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// statuses of n calls.
func statuses(s *Server, n int) []int {
	var all []int
	for range n {
		all = append(all, chat(s, "1").Code)
	}
	return all
}

func TestFailByChance(t *testing.T) {
	rules, _ := ParseFail("429:0.2,503:0.1,quota:0.1")
	mock := func(seed uint64) *Server {
		s, _ := newMock(t, Config{Fail: rules, Seed: seed})
		return s
	}
	s := mock(1)
	got := statuses(s, 2000)
	if !slices.Equal(got, statuses(mock(1), 2000)) || slices.Equal(got, statuses(mock(2), 2000)) {
		t.Error("a seed does not repeat, or does not matter")
	}
	count := map[int]int{}
	for _, c := range got {
		count[c]++
	}
	// 0.2 + 0.8*0.9*0.1 = 0.272 and 0.8*0.1 = 0.08 of 2000, within six deviations
	if count[429] < 420 || count[429] > 670 || count[503] < 85 || count[503] > 235 {
		t.Errorf("%v", count)
	}
	if st := s.Stats(); st.Failed != int64(count[429]+count[503]) || st.Admitted != int64(count[200]) || st.Refused != 0 {
		t.Errorf("%+v", st.Counts)
	}
}

func TestControl(t *testing.T) {
	s, _ := newMock(t, Config{RPM: 10, TPM: 100})
	wantStatus(t, chat(s, "200"), 429)
	w := do(s, "POST", "/control", `{"tpm":1000,"fail":"503:1","latency":"1ms","usage":"0.5"}`)
	wantStatus(t, w, 200)
	want := `{"rpm":10,"tpm":1000,"latency":"1ms","usage":"0.5","fail":"503:1"}` + "\n"
	if got := do(s, "GET", "/control", "").Body.String(); got != want || w.Body.String() != want {
		t.Errorf("%s", got)
	}
	wantStatus(t, chat(s, "10"), 503)
	wantStatus(t, do(s, "POST", "/control", `{"fail":"","rpm":0}`), 200)
	for _, status := range statuses(s, 20) { // no request limit any more
		if status != 200 {
			t.Fatal(status)
		}
	}
	for _, bad := range []string{`{"rpm":-1}`, `{"latency":"x"}`, `{"fail":"x"}`, `{"usage":"x"}`, `{"other":1}`, `{`} {
		wantStatus(t, do(s, "POST", "/control", bad), 400)
	}
	wantStatus(t, do(s, "DELETE", "/control", ""), 405)
}

// A change that is wrong in one part changes nothing.
func TestControlIsAllOrNothing(t *testing.T) {
	s, _ := newMock(t, Config{RPM: 10})
	wantStatus(t, do(s, "POST", "/control", `{"rpm":20,"fail":"x"}`), 400)
	if got := *s.control().RPM; got != 10 {
		t.Errorf("rpm %d", got)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []Config{
		{RPM: -1}, {TPM: maxTokens + 1}, {Window: -1}, {Mode: "x"}, {Burst: -1}, {Latency: -1},
		{Mode: ModeSliding, Burst: 1}, {Usage: Usage{Report: "x"}}, {Usage: Usage{Fraction: -1}}, {Fail: []FailRule{{Kind: "x"}}},
		{Now: func() time.Time { return time.Time{} }},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestBadHeaders(t *testing.T) {
	s, _ := newMock(t, Config{})
	for _, h := range []string{
		"X-Mock-Other: 1", "X-Mock-Status: 200", "X-Mock-Cut: here", "X-Mock-Input-Tokens: -1", "X-Mock-Latency: 1",
		"X-Mock-Chunks: x", "X-Mock-Usage: x", "X-Mock-No-Usage: maybe", "X-Mock-Body-Bytes: 9999999999",
	} {
		wantStatus(t, chat(s, "1", h), 400)
	}
}

// A code alone means a 429.
func TestCodeAlone(t *testing.T) {
	s, _ := newMock(t, Config{})
	w := chat(s, "1", "X-Mock-Code: insufficient_quota")
	wantStatus(t, w, 429)
	if e := decode(t, w.Body.Bytes())["error"].(map[string]any); e["code"] != "insufficient_quota" || w.Header().Get("Retry-After") != "" {
		t.Errorf("%v %v", e, w.Header())
	}
}

func TestAzurePathNamesModel(t *testing.T) {
	s, _ := newMock(t, Config{})
	wantStatus(t, do(s, "POST", "/openai/deployments/gpt/chat/completions?api-version=1", `{"messages":[]}`), 200)
	if e := lastEvent(t, s); e.Model != "gpt" {
		t.Errorf("%+v", e)
	}
}
