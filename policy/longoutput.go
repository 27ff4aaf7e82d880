// SPDX-License-Identifier: Apache-2.0

package policy

import "math"

// The length of an output is told to a sixth of an octave, up to two million tokens.
const outputStep = 6

// outputEnough is the weight (answers) from which on a learned output is used.
const outputEnough = 20

// OutputKey names what is learned of the output of a provider's model, for callers of a class.
func (h Hasher) OutputKey(provider, model, class string) Key {
	return h.Key(TierProvider, "output", provider, h.Shorten(model+"\x00"+class))
}

// LearnOutput takes an answer of so many tokens that came to its end. One that was cut short says nothing.
func (l *Learner) LearnOutput(now int64, key Key, tokens int64) {
	if tokens >= 0 {
		l.learn(now, key, int(math.Log2(float64(tokens+1))*outputStep), 1)
	}
}

// LearnOutputOf is to LearnOutput as [Learner.LearnInputOf] is to LearnInput, and LongOutputOf to LongOutput.
func (l *Learner) LearnOutputOf(now int64, own, all Key, tokens int64) {
	if l.LongOutput(now, own) == 0 {
		l.LearnOutput(now, all, tokens)
	}
	l.LearnOutput(now, own, tokens)
}

// LongOutputOf is what the tenant's own outputs seldom exceed, or all others' until that is known.
func (l *Learner) LongOutputOf(now int64, own, all Key) int64 {
	if n := l.LongOutput(now, own); n > 0 {
		return n
	}
	return l.LongOutput(now, all)
}

// LongOutput is how many tokens 95 of 100 outputs do not exceed; 0 if too little is known.
func (l *Learner) LongOutput(now int64, key Key) int64 {
	k, fresh := l.keep(now, key)
	if !fresh {
		if s := l.read(key); s != nil && s.total >= outputEnough {
			k.long = int64(math.Ceil(math.Exp2(math.Ceil(s.quantile(0.95)) / outputStep)))
		}
	}
	return k.long
}
