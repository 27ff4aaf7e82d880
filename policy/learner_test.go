// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirproxy/weir/policy/policytest"
	"pgregory.net/rapid"
)

// TestCalibrationConverges: whatever the tokenizer is off by, but for counts that are twice too large, the bias is under 3 percent after 50 answers, with noise, and
// with an answer in ten that is nonsense.
func TestCalibrationConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.Float64Range(1.1*leastRatio, 2.5).Draw(t, "off")
		noise := rapid.Float64Range(0, 0.08).Draw(t, "noise")
		junk := rapid.IntRange(0, 10).Draw(t, "junk")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		l := NewLearner(policytest.NewStore())
		key := Hasher{}.CalibrationKey("openai", "m")
		answer := func() (int64, int64) {
			n := 20 + int64(math.Exp(r.Float64()*8))
			return n, int64(math.Round(float64(n) * off * (1 + noise*(2*r.Float64()-1))))
		}
		for k := range 50 {
			n, actual := answer()
			if junk > 0 && k%10 == 0 && k/10 < junk {
				actual = []int64{1, n * 1000, n / 50, 0, -3}[k/10%5]
			}
			l.LearnInput(int64(k)*1e9, key, n, actual, false)
		}
		c := l.Calibration(60e9, key)
		sum, truth := 0.0, 0.0
		for range 2000 {
			n, actual := answer()
			got, ok := c.Apply(n, false)
			if !ok {
				t.Fatal("not calibrated after 50 answers")
			}
			sum, truth = sum+float64(got), truth+float64(actual)
		}
		if bias := sum/truth - 1; math.Abs(bias) > 0.03 {
			t.Errorf("bias %.1f %% after 50 answers of a tokenizer that is off by %.2f: %+v", bias*100, off, c)
		}
	})
}

// TestSketchQuantiles compares with sorted numbers: never off by more than the bucket.
func TestSketchQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, sketchBuckets-1), 1, 500).Draw(t, "buckets")
		var s sketch
		for _, b := range list {
			s.add(b, 1)
		}
		slices.Sort(list)
		for _, q := range []float64{0, 0.05, 0.25, 0.5, 0.75, 0.95, 1} {
			at := min(max(int(math.Ceil(q*float64(len(list))))-1, 0), len(list)-1)
			if got := s.quantile(q); got < float64(list[at]) || got > float64(list[at]+1) {
				t.Errorf("quantile %v is %v, but bucket %d", q, got, list[at])
			}
		}
	})
}

// TestLearnsAnew: when a provider changes its tokenizer, what was learned before is forgotten.
func TestLearnsAnew(t *testing.T) {
	l, key := NewLearner(policytest.NewStore()), Hasher{}.CalibrationKey("p", "m")
	for k := range 3000 {
		actual := int64(1300)
		if k >= 2000 {
			actual = 900
		}
		l.LearnInput(int64(k)*1e8, key, 1000, actual, false)
	}
	if c := l.Calibration(1e12, key); math.Abs(c.Ratio-0.9) > 0.02 {
		t.Errorf("ratio %.3f", c.Ratio)
	}
}

func TestExactCountsAreBelieved(t *testing.T) {
	for _, x := range []struct {
		c     Calibration
		exact bool
		want  int64
		ok    bool
	}{
		{Calibration{}, false, 1000, false},
		{Calibration{Weight: 7, Ratio: 2}, false, 1000, false},
		{Calibration{Weight: 8, Ratio: 1.2}, false, 1200, true},
		{Calibration{Weight: 8, Ratio: 1.2}, true, 1000, false},
		{Calibration{Weight: 100, Ratio: 1.02}, true, 1000, false},
		{Calibration{Weight: 100, Ratio: 1.3}, true, 1300, true},
		{Calibration{Weight: 100, Ratio: 0.3}, false, 500, true}, // nobody teaches that tokens are free
	} {
		if n, ok := x.c.Apply(1000, x.exact); n != x.want || ok != x.ok {
			t.Errorf("%+v: %d, %v", x, n, ok)
		}
	}
}

// TestLongOutput: 95 of 100 outputs fit what is learned, and it is not much above what they need.
func TestLongOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean, width := rapid.Float64Range(1, 9).Draw(t, "mean"), rapid.Float64Range(0, 2).Draw(t, "width")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		l, key := NewLearner(policytest.NewStore()), Hasher{}.OutputKey("p", "m", "batch")
		var all []int64
		for k := range 900 {
			n := int64(math.Exp(mean + width*r.NormFloat64()))
			all = append(all, n)
			l.LearnOutput(int64(k), key, n)
		}
		slices.Sort(all)
		got, want := l.LongOutput(2e9, key), all[len(all)*95/100-1]
		if got < want || float64(got) > float64(want+1)*1.13+1 {
			t.Errorf("%d learned; p95 is %d", got, want)
		}
	})
}

func TestTooFewOutputsSayNothing(t *testing.T) {
	l, key := NewLearner(policytest.NewStore()), Hasher{}.OutputKey("p", "m", "")
	for k := range outputEnough {
		if n := l.LongOutput(int64(k), key); n != 0 {
			t.Fatalf("%d after %d answers", n, k)
		}
		l.LearnOutput(int64(k), key, 100)
	}
	if n := l.LongOutput(1e9, key); n < 100 || n > 115 {
		t.Errorf("%d", n)
	}
}

// TestWorkersLearnTogether: in every order of two workers' accesses nothing is lost that was written, whoever came first.
func TestWorkersLearnTogether(t *testing.T) {
	key := Hasher{}.CalibrationKey("p", "m")
	orders := policytest.EveryOrder(3, func(choose func(int) int) {
		store := policytest.NewStore()
		var workers []policytest.Worker
		for w := range 2 {
			workers = append(workers, func(yield func()) {
				l := NewLearner(storeThat{store, yield})
				for range 2 {
					l.LearnInput(int64(w), key, 10, 13, false)
				}
			})
		}
		policytest.Run(choose, workers...)
		if s := NewLearner(store).read(key); s == nil || s.total != 4 {
			t.Fatalf("of 4 answers: %+v", s)
		}
	})
	t.Logf("%d orders", orders)
}

// storeThat calls yield before each access.
type storeThat struct {
	*policytest.Store
	yield func()
}

func (s storeThat) Get(key string) ([]byte, uint32, bool) {
	s.yield()
	return s.Store.Get(key)
}

func (s storeThat) Set(key string, value []byte, cas uint32) bool {
	s.yield()
	return s.Store.Set(key, value, cas)
}

// TestManyModels: models that come in any number take a bounded number of slots, and none learns from another's answers.
func TestManyModels(t *testing.T) {
	store := policytest.NewStore()
	l, names := NewLearner(store), map[string]bool{}
	store.Before = func(_, key string) bool { names[key] = true; return true }
	first := Hasher{}.CalibrationKey("p", "first")
	for range 20 {
		l.LearnInput(0, first, 100, 130, false)
	}
	for k := range 5000 {
		l.LearnInput(int64(k), Hasher{}.CalibrationKey("p", fmt.Sprint("model", k)), 100, 60, false)
	}
	if len(names) > learnSlots {
		t.Errorf("%d names", len(names))
	}
	if c := l.Calibration(10e9, first); math.Abs(c.Ratio-1.3) > 0.02 {
		t.Errorf("ratio of the first model: %+v", c)
	}
	l.LearnInput(2*strangerIdle, Hasher{}.CalibrationKey("p", "late"), 100, 130, false) // idle slots are free again
	if s := l.read(Hasher{}.CalibrationKey("p", "late")); s == nil || s.total != 2 {
		t.Errorf("a model that came late: %+v", s)
	}
}

// TestForeignValues: what is no sketch is neither read nor trusted.
func TestForeignValues(t *testing.T) {
	store, key := policytest.NewStore(), Hasher{}.CalibrationKey("p", "m")
	for _, at := range waysOf(key) {
		n := learnedName(at)
		store.Set(n.str(), []byte("something else"), CreateCAS)
	}
	l := NewLearner(store)
	if c := l.Calibration(0, key); c != (Calibration{}) {
		t.Errorf("%+v", c)
	}
	l.LearnInput(0, key, 100, 130, false)
	if s := l.read(key); s == nil {
		t.Error("nothing was learned")
	}
}
