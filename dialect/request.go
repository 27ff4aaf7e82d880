// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"github.com/tidwall/gjson"
	"github.com/weirproxy/weir/policy/tokens"
)

// How an estimate of the input came about.
type How uint8

// Ways to estimate.
const (
	Exact    How = iota // counted with the model's own vocabulary
	Estimate            // counted with another vocabulary, times a factor
	Length              // from the length of the body, which was not read
)

var howNames = [...]string{"exact", "estimate", "length"}

func (h How) String() string { return howNames[h] }

// A Request is what a request's body says about its cost.
type Request struct {
	Model        string
	Stream       bool
	IncludeUsage bool  // the caller asked for usage in the stream
	Input        int64 // tokens
	Output       int64 // the most tokens that it declares, for all answers together; -1: it declares none
	How          How
	Family       tokens.Family
}

// maxDeclared is what larger declarations of output are taken for; no limit is that large.
const maxDeclared = 1 << 50

// bytesPerToken is what the length of a body that is not read stands for. It is an average of JSON with English text; the
// answer's usage puts it right.
const bytesPerToken = 4

// ByLength is the estimate for a body that is not read.
func ByLength(bytes int64) Request {
	return Request{Input: (bytes + bytesPerToken - 1) / bytesPerToken, Output: -1, How: Length}
}

// A Reader reads requests. It holds the counters' memory and is not safe for concurrent use.
type Reader struct {
	set    tokens.Set
	family tokens.Family
}

// Read reads a body, which must not change while the request's Model is in use. family gives the tokenizer of a model.
func (r *Reader) Read(api API, body []byte, family func(model string) tokens.Family) Request {
	var m members
	if !m.read(body) {
		return ByLength(int64(len(body)))
	}
	q := Request{Model: m.model, Stream: m.stream, IncludeUsage: m.includeUsage, Output: -1}
	r.family = family(q.Model)
	q.Family, q.How = r.family, Estimate
	if r.family.Exact() {
		q.How = Exact
	}
	switch api {
	case Chat:
		q.Input = r.chat(&m)
		q.Output = times(max(m.number(kMaxTokens), m.number(kMaxCompletionTokens)), m.count(kN))
	case Responses:
		q.Input = r.responses(&m)
		q.Output = m.number(kMaxOutputTokens)
	case Completions:
		var prompts int64
		q.Input, prompts = r.completions(&m)
		q.Output = times(max(m.number(kMaxTokens), -1), max(m.count(kN), m.count(kBestOf))*prompts)
	case Embeddings:
		q.Input, _ = r.prompts(m.values[kInput])
		q.Output = 0
	case Messages:
		q.Input = r.messages(&m)
		q.Output = m.number(kMaxTokens)
	}
	return q
}

// times multiplies a declared output by the number of answers.
func times(output, n int64) int64 {
	if output < 0 {
		return -1
	}
	if n > 1 && output > maxDeclared/n {
		return maxDeclared
	}
	return output * max(n, 1)
}

// text counts a value that should be a string; anything else counts as the JSON that it is, and null not at all.
func (r *Reader) text(v gjson.Result) int64 {
	switch v.Type {
	case gjson.Null:
		return 0
	case gjson.String:
		return r.set.CountJSON(r.family, v.Raw[1:len(v.Raw)-1])
	}
	return r.set.Count(r.family, v.Raw)
}
