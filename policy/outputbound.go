// SPDX-License-Identifier: Apache-2.0

package policy

// OutputBound is what is reserved for the output of a call whose declared output is declared tokens, or that declares none
// (-1): the policy's default, the model's maximum, a quarter of the smallest token limit of the path, and what that limit
// leaves beside the input, so that a request that fits an empty window is never refused for what it did not ask
// (RATIONALE.md, "Why is undeclared output not reserved in full?").
func (p *Policy) OutputBound(path *Path, m *Model, input, declared int64) int64 {
	if declared >= 0 {
		return declared
	}
	bound := p.Output
	if m != nil && m.MaxOutput > 0 {
		bound = min(bound, m.MaxOutput)
	}
	tokens, output := path.smallest(Tokens), path.smallest(OutputTokens)
	return max(min(bound, (tokens-1)/4+1, (output-1)/4+1, tokens-input), 0)
}

// OutputCap is what is written into a request that declares no output; 0: nothing is.
func (p *Policy) OutputCap(m *Model, declared int64) int64 {
	switch {
	case !p.Cap || declared >= 0:
		return 0
	case m != nil && m.MaxOutput > 0:
		return min(p.Output, m.MaxOutput)
	}
	return p.Output
}

// LearnedOutput is OutputBound where output.reserve is learned: what outputs are seldom longer than, if that is known (long
// is above 0), but never more than the call declares or may produce.
func (p *Policy) LearnedOutput(path *Path, m *Model, input, declared, long int64) int64 {
	bound := p.OutputBound(path, m, input, declared)
	if !p.Learned || long <= 0 {
		return bound
	}
	if declared >= 0 {
		return min(declared, long)
	}
	if m != nil && m.MaxOutput > 0 {
		long = min(long, m.MaxOutput)
	}
	return max(min(long, path.smallest(Tokens)-input, path.smallest(OutputTokens)), 0)
}

// GuessedInput bounds a guess of the input from the length of a body that nobody read by what the path admits at all: a
// guess must not refuse for good what might fit.
func (p *Policy) GuessedInput(path *Path, guess, output int64) int64 {
	return max(min(guess, path.smallest(Tokens)-output, path.smallest(InputTokens)), 0)
}
