// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// How an estimate of the input came about.
type How uint8

// Ways to estimate.
const (
	Exact      How = iota // counted with the model's own vocabulary
	Estimate              // counted with another vocabulary, times a factor
	Length                // from the length of the body, which was not read
	Bound                 // not counted: an upper bound from the length of a body of text
	Calibrated            // counted, and put right by what the provider's answers said of earlier counts
	NumHows               // how many there are
)

var howNames = [NumHows]string{"exact", "estimate", "length", "bound", "calibrated"}

func (h How) String() string { return howNames[h] }

// A Request is what a request's body says about its cost.
type Request struct {
	Model        string
	Stream       bool
	IncludeUsage bool  // the caller asked for usage in the stream
	Input        int64 // tokens
	Output       int64 // the most tokens that it declares, for all answers together; -1: it declares none
	Least        int64 // the least tokens of output that it asks for
	How          How
	Family       tokens.Family

	// References says that the body names input that is not in it: an earlier answer, a file, an image. So what the provider
	// counts may be far more than Input.
	References bool
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

// A Reader reads requests: Open, and then Count if the bound that Open gives is not enough to know. It holds the
// counters' memory and what it knows of one body at a time, and is not safe for concurrent use.
type Reader struct {
	set     tokens.Set
	nesting int   // of the content that is being counted
	worked  int64 // by the set, before this body
	family  tokens.Family
	api     API
	members members
	request Request
	keys    keyStack
}

// Open reads what stands at the top level of a body, which must not change until the next Open. Input is then an upper
// bound, if How is Bound, or counted already. ok: the body is a JSON object.
func (r *Reader) Open(api API, body []byte, family func(model string) tokens.Family) (q Request, ok bool) {
	if !r.open(api, body, false, nil, family) {
		r.request = ByLength(int64(len(body)))
		return r.request, false
	}
	r.request.How = Bound
	if text := forms[api].text; text == nil || !r.members.whole || !text(&r.members) {
		return r.Count(), true
	}
	// A token is a byte at least, whatever the family, and what a message costs beside its text is less than half of what
	// its braces and names take. What a provider puts before tools has no bytes in the body.
	r.request.Input = int64(len(body))*3/2 + perRequest + perMessage
	if r.members.has(kTools) {
		r.request.Input += anthropicToolsFrame
	}
	return r.request, true
}

// OpenPart reads the beginning of a body of so many bytes: what it says at its top level, as far as it is there. The input
// counts by the length, but for pictures and files. An outline of the body, if there is one, says what stands behind the part, too;
// it must not change until the next Open either.
func (r *Reader) OpenPart(api API, part []byte, o *Outline, length int64, family func(model string) tokens.Family) (q Request, ok bool) {
	if !r.open(api, part, true, o, family) {
		r.request = ByLength(length)
		return r.request, false
	}
	r.request.Input, r.request.How, r.request.References = estimatePart(r.members.body, length), Length, true
	return r.request, true
}

// OpenOutline reads what an outline says so far. Its input is none.
func (r *Reader) OpenOutline(api API, o *Outline, family func(model string) tokens.Family) Request {
	r.open(api, nil, true, o, family)
	return r.request
}

func (r *Reader) open(api API, body []byte, part bool, o *Outline, family func(model string) tokens.Family) (ok bool) {
	r.api, r.nesting, r.worked = api, 0, r.set.Work()
	m := &r.members
	ok = m.read(body, part, o)
	r.request = Request{
		Model:        m.model(),
		Stream:       forms[api].streamed(m.values[kStream]),
		IncludeUsage: m.value(kStreamOptions).Get("include_usage").Type() == jsonwalk.True,
		Output:       forms[api].output(m),
		Least:        times(max(m.number(kMinTokens), 0), m.count(kN)),
		References:   m.has(kEarlier) || m.has(kConversation) || m.has(kCachedContent) || api == Responses && m.has(kPrompt),
	}
	r.family = family(r.request.Model)
	r.request.Family = r.family
	return ok
}

// streamed says whether a body asks for a stream.
func (f *form) streamed(value string) bool {
	if f.streams {
		return value != "false"
	}
	return value == "true"
}

// output is the output that a body declares, for all answers together.
func (f *form) output(m *members) int64 {
	if f.declared == nil {
		return 0
	}
	return f.declared(m)
}

// Count counts the input of the body that was opened.
func (r *Reader) Count() Request {
	if r.request.How != Bound {
		return r.request
	}
	q := &r.request
	q.How = Estimate
	if r.family.Exact() {
		q.How = Exact
	}
	if count := forms[r.api].count; count != nil {
		q.Input = count(r, &r.members)
		if r.keys.doubled(r.members.body) { // nobody knows what the provider reads of it
			q.Input = max(q.Input, r.set.Count(r.family, r.members.body))
		}
	}
	return *q
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

// maxWork is how many bytes of one body are merged, see tokens.Set.Work; what comes then counts by its length. A text of its own
// is bounded already, this bounds many of them.
const maxWork = 512 << 10

// text counts a value that should be a string; anything else counts as the JSON that it is, and null not at all.
func (r *Reader) text(v jsonwalk.Value) int64 {
	switch {
	case v.Type() == jsonwalk.Null:
		return 0
	case r.set.Work()-r.worked > maxWork:
		return int64(len(v)+1) / 2
	case v.Type() == jsonwalk.String:
		return r.set.CountJSON(r.family, v.Quoted())
	}
	return r.set.Count(r.family, string(v))
}
