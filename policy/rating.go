// SPDX-License-Identifier: Apache-2.0

package policy

import "math"

// TokenCounts is a call's tokens by kind. Cached and Image are parts of Input, Reasoning is a part of Output, as OpenAI counts
// them. Uncounted is beside Input: what Anthropic reads from its cache, which counts toward no limit but costs what cached
// tokens cost.
type TokenCounts struct {
	Input, Cached, Image int64
	Output, Reasoning    int64
	Uncounted            int64
}

// A Rating says what a token of each kind counts toward limits, and what it costs. The zero value counts every token once and
// costs nothing.
type Rating struct {
	weights *WeightSpec
	nano    [numKinds]int64 // nano-dollars a token
}

// Kinds of tokens.
const (
	kindInput = iota
	kindCached
	kindImage
	kindOutput
	kindReasoning
	numKinds
)

func (t *TokenCounts) kinds() [numKinds]int64 {
	return [...]int64{
		kindInput:  max(t.Input-t.Cached-t.Image, 0),
		kindCached: t.Cached, kindImage: t.Image,
		kindOutput: max(t.Output-t.Reasoning, 0), kindReasoning: t.Reasoning,
	}
}

// Cost is what so many tokens of one request cost: weighted tokens, and micro-dollars, both rounded up.
func (r *Rating) Cost(t TokenCounts) Cost {
	k := t.kinds()
	c := Cost{Requests: 1, Input: t.Input, Output: t.Output}
	if w := r.weights; w != nil {
		c.Input = satAdd(satAdd(k[kindInput], weigh(k[kindCached], w.Cached)), weigh(k[kindImage], w.Image))
		c.Output = satAdd(k[kindOutput], weigh(k[kindReasoning], w.Reasoning))
	}
	nano := satMul(t.Uncounted, r.nano[kindCached])
	for i, n := range k {
		nano = satAdd(nano, satMul(n, r.nano[i]))
	}
	c.Spend = nano/1000 + min(nano%1000, 1)
	return c
}

func weigh(n int64, w *Share) int64 {
	if w == nil {
		return n
	}
	return mulDivUp(n, int64(*w), int64(Whole))
}

// ratings compiles prices and weights.
func (c *compiler) ratings(p *Policy) {
	for _, pattern := range sortedKeys(c.spec.Prices) {
		s, path := c.spec.Prices[pattern], Join("prices", pattern)
		for _, f := range []struct {
			name  string
			price float64
		}{{"input", s.Input}, {"cached", orElse(s.Cached, 0)}, {"image", orElse(s.Image, 0)}, {"output", s.Output}, {"reasoning", orElse(s.Reasoning, 0)}} {
			if !(f.price >= 0 && f.price <= maxPrice) {
				c.add(Join(path, f.name), "write US dollars for a million tokens, such as 2.5", "%v is not between 0 and %v", f.price, maxPrice)
			}
		}
		p.prices.Add(pattern, s)
	}
	for _, pattern := range sortedKeys(c.spec.Weights) {
		w := c.spec.Weights[pattern]
		p.weights.Add(pattern, &w)
	}
}

// maxPrice is US dollars for a million tokens: a dollar a token.
const maxPrice = 1e6

// Rating says what the tokens of a model count and cost.
func (p *Policy) Rating(model string) (r Rating) {
	if p.weights.Len() > 0 {
		r.weights, _ = p.weights.Lookup(model)
	}
	if p.prices.Len() == 0 {
		return r
	}
	s, ok := p.prices.Lookup(model)
	if !ok {
		return r
	}
	// US dollars for a million tokens are micro-dollars for one.
	nano := func(price float64) int64 {
		return int64(math.Ceil(price*1000 - 1e-6)) // 16.007 is no exact float: its thousandfold is a little more than 16007
	}
	r.nano = [...]int64{
		kindInput: nano(s.Input), kindCached: nano(orElse(s.Cached, s.Input)), kindImage: nano(orElse(s.Image, s.Input)),
		kindOutput: nano(s.Output), kindReasoning: nano(orElse(s.Reasoning, s.Output)),
	}
	return r
}

// orElse is a price that may not be there.
func orElse(price *float64, otherwise float64) float64 {
	if price == nil {
		return otherwise
	}
	return *price
}
