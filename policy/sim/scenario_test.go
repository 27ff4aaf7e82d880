// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Each scenario that comes with weir holds, and says the same each time.
func TestScenarios(t *testing.T) {
	names := ScenarioNames()
	if len(names) < 6 {
		t.Fatal(names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			text, _ := ScenarioText(name)
			s, err := ParseScenario(name, text)
			if err != nil {
				t.Fatal(err)
			}
			var last []byte
			for range 2 {
				r, err := s.Run(Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range r.Checks {
					if !c.OK {
						t.Errorf("%s: %s: %s", c.What, c.Want, c.Found)
					}
				}
				b, err := json.Marshal(r)
				if err != nil || last != nil && !bytes.Equal(last, b) {
					t.Errorf("another time it says %s, %v", b, err)
				}
				last = b
			}
		})
	}
}

// What is wrong is said with file, line and what to write instead.
func TestScenarioErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":                                    "f:1: nobody asks for anything (write: at 0s acme",
		"tenent acme: tpm 5":                  `f:1: unknown word "tenent" (a line begins with tenant`,
		"\ntenant acme tpm 5":                 "f:2: no name with a colon after tenant (write tenant acme: tpm 10_000)",
		"tenant acme:":                        "f:1: tenant acme has no limit (write tenant acme: tpm 10_000)",
		"tenant acme: tmp 5":                  `f:1: unknown word "tmp" in a limit (write rps rpm`,
		"tenant acme: tpm":                    "f:1: tpm is missing (write tpm 10_000)",
		"tenant acme: tpm ten":                `f:1: "ten" is no count: write a whole number such as 30_000`,
		"# a\ntenant acme: tpm 0\nat 0s acme": "f:2: limits.tenant.acme.tpm: 0 is not between 1",
		"tenant acme: rpm 9 tpm 9 burst 3\nat 0s acme": "f:1: limits.tenant.acme.burst: a number cannot stand",
		"tenant acme: share 20%":                       `f:1: unknown word "share"`,
		"at soon acme":                                 `f:1: "soon" is no duration: write 500ms`,
		"at 0s":                                        "f:1: who asks is missing",
		"at 0s acme inputs 5":                          `f:1: unknown word "inputs" (write input, output`,
		"at 0s acme ends badly":                        `f:1: unknown ending "badly" (write complete`,
		"every 1s acme":                                "f:1: it does not say for how long",
		"every 0s for 1s acme":                         "f:1: more than 100000 requests",
		"every 1ms for 1h acme":                        "f:1: more than 100000 requests",
		"at 0s 100_001 times acme":                     "f:1: more than 100000 requests",
		"at 900d acme":                                 "f:1: 21600h0m0s: a scenario lasts 31d at most",
		"at 0s acme\ntenant acme: tpm 5":               "f:2: a limit after the first request would have to have a time (write: at 30s change tenant acme: tpm 5)",
		"at 0s acme\nat 1s change":                     "f:2: it does not say what changes",
		"at 0s acme\nat 1s change tenant bob: none":    "f:2: tenant bob has no limit that could be taken away",
		"at 0s acme\nat 2s change tool a: rps 1\nat 1s change tool a: rps 2": "f:3: a change before one that came earlier",
		"expect admitted":                                           "f:1: there is no request before it",
		"at 0s acme\nexpect":                                        "f:2: neither admitted nor refused",
		"at 0s acme\nexpect refused limits":                         `f:2: unknown word "limits" (write a reason`,
		"at 0s acme\nexpect admitted tokens":                        "f:2: it does not say how many tokens",
		"at 0s acme\nexpect admitted tokens <= 5 in 60s":            "f:2: it does not say in which time",
		"at 0s acme\nexpect refused calls <= 5 in any 60s":          "f:2: in any window it can only be said",
		"at 0s acme\nexpect admitted tokens <= 5 in any 60s always": `f:2: nothing is known of "always" here`,
		"at 0s acme restart now\nat 0s restart now":                 `f:1: unknown word "restart"`,
	} {
		_, err := ParseScenario("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q says:\n  %v\nwant\n  %s", text, err, says)
		}
	}
}

// An expectation that is wrong fails: nothing is taken for granted.
func TestScenarioExpectationsBite(t *testing.T) {
	const base = "tenant acme: tpm 6_000\nat 0s acme input 500 output 1_000\nat 0s 2 times acme input 500 output 1_000\n"
	for _, want := range []string{
		"expect admitted", "expect admitted 1", "expect admitted >= 1", "expect refused 1", "expect refused quota_exhausted",
		"expect refused limit_exceeded user", "expect refused rpm", "expect refused wait 14s", "expect refused left 1",
		"expect admitted tokens <= 1_499", "expect admitted tokens <= 1_499 in any 60s", "expect admitted tokens >= 1_501 in all",
		"expect admitted calls >= 2", "expect refused calls = 1", "expect admitted tokens >= 1 of globex",
	} {
		s, err := ParseScenario("f", []byte(base+want))
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(Options{})
		if err != nil || !r.Failed() {
			t.Errorf("%q is taken for true: %+v %v", want, r.Checks, err)
		}
	}
}

// Whatever is written: an error with a place, or a scenario that runs.
func FuzzScenario(f *testing.F) {
	for _, name := range ScenarioNames() {
		text, _ := ScenarioText(name)
		f.Add(text)
	}
	f.Add([]byte("at 0s 5 times a input 1\nexpect refused 3 limit_exceeded wait 1s left -4\nat 1s crash\nat 1s restart"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseScenario("f", text)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Errorf("an error without a place: %q", line)
				}
			}
			return
		}
		total := 0
		for _, a := range s.asks {
			total += a.n * a.times
		}
		if total > 200 { // it would run, but slowly
			return
		}
		if _, err := s.Run(Options{}); err != nil {
			t.Error(err)
		}
	})
}

// Who comes back after days does not make a scenario of a second run for ever.
func TestScenarioThatIsPutOff(t *testing.T) {
	s, err := ParseScenario("f", []byte("tenant acme: rpd 1\nat 0s 3 times acme takes 0s retry\n  expect admitted 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(Options{})
	if err != nil || r.Failed() || len(r.Charts[0].Lines[0].Points) > 2*morePoints {
		t.Errorf("%v %+v, %d points", err, r.Checks, len(r.Charts[0].Lines[0].Points))
	}
}
