// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A Calibration is what answers said of the counts of one model's input, as ratios of what the provider counted to what we
// did. The zero value knows nothing.
type Calibration struct {
	Weight uint32  // of the answers; an answer weighs 1 to 4, by its length
	Ratio  float64 // by which a count is to be multiplied
	Spread float64 // half of the answers were within this share of Ratio
	P95    float64 // and 95 of 100 within this
}

// A ratio is told to a 46th of its logarithm, within a factor of four: no tokenizer is farther from the count, and who
// claims more cannot move the ratio by it.
const (
	ratioStep   = sketchBuckets / 2 / (2 * math.Ln2)
	ratioMiddle = sketchBuckets / 2

	// calibrated is the weight from which on a ratio is used; exactOff is how far off it must be to be believed against a count
	// with the model's own vocabulary, and exactWeight from which weight on.
	calibrated  = 8
	exactOff    = 0.03
	exactWeight = 24
	exactSlack  = 4 // tokens

	// leastRatio bounds what callers gain who teach that their tokens are fewer than they are: twice the limit may be in flight,
	// and what was too much is a debt of one window, which a bucket remembers all of.
	leastRatio = 0.5

	// sharedUntil is how much a tenant teaches the others, see [Learner.LearnInputOf].
	sharedUntil = exactWeight
)

// CalibrationKey names what is learned of the input of a provider's model.
func (h Hasher) CalibrationKey(provider, model string) Key {
	return h.Key(TierProvider, "input", provider, h.Shorten(model))
}

// TenantKey names what a tenant's own calls have taught of what the key names.
func (h Hasher) TenantKey(k Key, tenant string) Key {
	var of [8]byte
	binary.LittleEndian.PutUint64(of[:], uint64(k))
	return h.Key(TierTenant, "learned", string(of[:]), tenant)
}

// LearnInputOf is LearnInput for a tenant, whose own lessons count for itself alone. It teaches all others only until it knows
// enough: so nobody outvotes them, and who is new begins with what most have found.
func (l *Learner) LearnInputOf(now int64, own, all Key, estimated, actual int64, exact bool) {
	if l.Calibration(now, own).Weight < sharedUntil {
		l.LearnInput(now, all, estimated, actual, exact)
	}
	l.LearnInput(now, own, estimated, actual, exact)
}

// CalibrationOf is what a tenant's own calls have taught, or all others' until that is enough.
func (l *Learner) CalibrationOf(now int64, own, all Key) Calibration {
	if c := l.Calibration(now, own); c.Weight >= calibrated {
		return c
	}
	return l.Calibration(now, all)
}

// LearnInput takes an answer: the provider counted actual tokens of input where we had counted estimated, before any
// calibration. Cached tokens must be in both. exact: we counted with the model's own vocabulary; a few tokens more or less are
// then what the provider puts around messages, not another vocabulary.
func (l *Learner) LearnInput(now int64, key Key, estimated, actual int64, exact bool) {
	if estimated <= 0 || actual <= 0 {
		return
	}
	if exact && max(actual-estimated, estimated-actual) <= exactSlack {
		actual = estimated
	}
	at := ratioMiddle + math.Log(float64(actual)/float64(estimated))*ratioStep
	// What a provider adds to each call weighs little in a long one, so long ones say more.
	weight := min(max(bits.Len64(uint64(estimated))/3, 1), 4)
	l.learn(now, key, int(math.Floor(min(max(at, 0), sketchBuckets-1))), uint16(weight))
}

// Calibration gives what is known of a model's input. A worker hears of what the others learned within a second.
func (l *Learner) Calibration(now int64, key Key) Calibration {
	k, fresh := l.keep(now, key)
	if !fresh {
		if s := l.read(key); s != nil {
			k.input = calibrationOf(s)
		}
	}
	return k.input
}

func calibrationOf(s *sketch) (c Calibration) {
	if s.total == 0 {
		return c
	}
	middle := s.middle()
	away := func(q float64) float64 {
		low, high := s.quantile((1-q)/2), s.quantile((1+q)/2)
		return math.Exp(max(middle-low, high-middle)/ratioStep) - 1
	}
	return Calibration{Weight: s.total, Ratio: math.Exp((middle - ratioMiddle) / ratioStep), Spread: away(0.5), P95: away(0.95)}
}

// Apply puts a count right; false if too little is known. exact: the count is by the model's own vocabulary, which is
// only wrong if the provider adds something, or has another model behind the name.
func (c Calibration) Apply(count int64, exact bool) (int64, bool) {
	switch {
	case c.Weight < calibrated || count <= 0:
		return count, false
	case exact && (c.Weight < exactWeight || math.Abs(c.Ratio-1) < exactOff):
		return count, false
	}
	return int64(math.Ceil(float64(min(count, MaxUnits))*max(c.Ratio, leastRatio) - 1e-9)), true
}
