// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func answer(date string, more ...[2]string) Reply {
	return Reply{Status: 200, Headers: append(headers{{"date", "Tue, 01 Jan 2030 00:00:" + date + " GMT"}}, more...)}
}

func limitIs(n string) [2]string     { return [2]string{"x-ratelimit-limit-tokens", n} }
func remainingIs(n string) [2]string { return [2]string{"x-ratelimit-remaining-tokens", n} }

// The freshest answer wins, one from a cache counts for nothing, and a limit moves by at most a factor of two in 10 s.
func TestLearner(t *testing.T) {
	var l Learner
	own := func(Dimension) int64 { return 100 }
	d := Dimension{Tokens, minute}
	for _, row := range []struct {
		at   float64
		r    Reply
		want []Finding
	}{
		{0, answer("10", limitIs("1000"), remainingIs("850"), [2]string{"x-ratelimit-reset-tokens", "9s"}), []Finding{{d, "", 0, 1000, false}}},
		{1, answer("11", limitIs("1000"), remainingIs("700")), []Finding{{d, "", 50, 200, true}}},
		{2, answer("05", limitIs("9000"), remainingIs("0")), nil},                                                             // overtaken
		{3, answer("13", limitIs("9000"), remainingIs("0"), [2]string{"age", "9"}), nil},                                      // cached
		{4, answer("13", limitIs("-1"), remainingIs("-1")), nil},                                                              // unknown
		{20, answer("30", limitIs("800"), [2]string{"x-ratelimit-limit-user", "soon"}), []Finding{{d, "", 1000, 800, false}}}, // without a window
	} {
		got := l.Take(nil, sec(row.at), row.r, own)
		if !slices.Equal(got, row.want) {
			t.Errorf("at %g s found %+v, want %+v", row.at, got, row.want)
		}
	}
	if k := l.Limits()[0]; k.Effective() != 600 || k.Dimension != d {
		t.Errorf("%+v", k)
	}
}

func TestLearnerMoves(t *testing.T) {
	var l Learner
	for _, row := range []struct {
		at   float64
		told string
		want int64
	}{{0, "1000", 1000}, {5, "999999999", 1000}, {15, "999999999", 2000}, {16, "1", 2000}, {26, "1", 1000}, {40, "1000", 1000}, {60, "900", 900}} {
		l.Take(nil, sec(row.at), Reply{Headers: headers{{"x-ratelimit-limit-tokens-minute", row.told}}}, nil)
		if got := l.Limits()[0].Limit; got != row.want {
			t.Errorf("told %s at %g s it believes %d, want %d", row.told, row.at, got, row.want)
		}
	}
}

// A sample of real headers, and the other window that it must not be taken for.
func TestImpliedWindow(t *testing.T) {
	for _, row := range []struct {
		limit, remaining, reset, want int64
	}{
		{500, 499, 120e6, minute}, {1_500_000, 1_482_750, 993_562_000_000, day}, {30_000, 29_980, 40e6, minute}, {200, 199, 432 * second, day},
		{30_000, 30_000, 0, 0}, {30_000, 0, 17 * second, 0}, {2_000_000, 1_999_999, 1e6, 0}, {100, 50, 30 * minute, hour},
	} {
		o := Observation{Limit: row.limit, Remaining: row.remaining, Reset: row.reset}
		if got := o.impliedWindow(); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// A provider with hidden limits is probed to within a third of each that is used, and never far above it.
func TestProbe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hidden := [NumProbed]int64{rapid.Int64Range(4, 200).Draw(t, "in flight"), rapid.Int64Range(40, 50_000).Draw(t, "rpm"), rapid.Int64Range(40_000, 5_000_000).Draw(t, "tpm")}
		p := NewProbe(0)
		for s := int64(0); s < 4*3600 && !p.Done(); s += 20 {
			sample := ProbeSample{Used: p.Limits(), Answered: 10}
			for d := range NumProbed {
				if sample.Used[d] > hidden[d] {
					sample.Rejected, sample.By = 1, p.raising.Dimension().Quantity
				}
			}
			before := p.Limits()
			f, changed := p.Step(s*second, sample)
			differ := 0
			for d := range NumProbed {
				if before[d] != p.Limits()[d] {
					differ++
				}
			}
			if differ > 1 || changed && p.Limits()[f.Probed] != f.To || !changed && differ > 0 {
				t.Fatalf("%v to %v is told as %+v", before, p.Limits(), f)
			}
		}
		for d := range NumProbed {
			if got := p.Limits()[d]; !p.found[d] || got > hidden[d] || got*3 < hidden[d]*2-3 {
				t.Errorf("%v of %v", p.Limits(), hidden)
			}
		}
	})
}

func TestProbeExample(t *testing.T) {
	p := NewProbe(0)
	idle := ProbeSample{Used: [NumProbed]int64{1, 2, 3}, Answered: 10}
	if _, changed := p.Step(minute, idle); changed {
		t.Error("raised what is not used")
	}
	if f, _ := p.Step(2*minute, ProbeSample{Used: [NumProbed]int64{2, 10, 100}, Answered: 10}); f != (ProbeFinding{2 * minute, ProbedInFlight, 2, 3, false}) {
		t.Errorf("%+v", f)
	}
	if _, changed := p.Step(2*minute+second, ProbeSample{Rejected: 1}); changed {
		t.Error("a rejection from before the raise counts")
	}
	if f, _ := p.Step(3*minute, ProbeSample{Rejected: 1}); f != (ProbeFinding{3 * minute, ProbedInFlight, 3, 2, true}) {
		t.Errorf("%+v", f)
	}
	p.Tell(ProbedTokens, 90_000)
	if f, _ := p.Step(4*minute, ProbeSample{Rejected: 1, By: Requests}); f != (ProbeFinding{4 * minute, ProbedRequests, 20, 10, true}) || !p.Done() {
		t.Errorf("%+v", f)
	}
}
