// SPDX-License-Identifier: Apache-2.0

package mock

import "strconv"

// defaultChunks is the number of content events where a call does not say.
const defaultChunks = 20

// answer is all that the dialects need to write one.
type answer struct {
	id           int64
	created      int64 // unix seconds
	path, method string
	model        string
	models       []string
	in, out      int64 // tokens
	report       Report
	includeUsage bool
	choices      int64
	words        int64 // of each choice
	chunks       int64 // content events of each choice
	vectors      int64
	dimensions   int64
	base64       bool
}

func newAnswer(c *call, created int64) answer {
	a := answer{
		id: int64(c.seq), created: created, path: c.event.Path, method: c.event.Method,
		model: c.model, models: c.server.models,
		in: c.input, out: c.output, report: c.usage.Report,
		includeUsage: c.req.includeUsage,
		choices:      min(saturate(c.req.choices(), max(1, c.req.inputs)), maxChoices),
		vectors:      max(1, c.req.inputs), dimensions: c.req.dimensions, base64: c.req.base64,
	}
	a.words = min(a.out, maxWords) / a.choices
	if a.out > 0 && a.words == 0 {
		a.words = 1
	}
	a.chunks = min(a.words, defaultChunks)
	if c.over.chunks >= 0 {
		a.chunks = int64(c.over.chunks)
	}
	return a
}

// piece is the text of content event i of a choice.
func (a *answer) piece(i int64) string {
	return words(a.words*i/a.chunks, a.words*(i+1)/a.chunks)
}

// ident is the identifier of the answer, with the dialect's prefix.
func (b text) ident(prefix string, id int64) text {
	b = b.s(`"`).s(prefix).s("mock")
	for pad := 10 - len(strconv.AppendInt(nil, id, 10)); pad > 0; pad-- {
		b = append(b, '0')
	}
	return b.n(id).s(`"`)
}

// usage is OpenAI's member "usage" with a leading comma, or nothing. The counters
// have other names in each API; details are further members, as they stand.
func (b text) usage(a *answer, in, out, details string) text {
	switch a.report {
	case ReportNone:
		return b
	case ReportNull:
		return b.s(`,"usage":null`)
	}
	i, o := a.report.counters(a.in, a.out)
	b = b.s(`,"usage":{"`).s(in).s(`":`).n(i)
	if out != "" {
		b = b.s(`,"`).s(out).s(`":`).n(o)
	}
	return b.s(`,"total_tokens":`).n(a.report.sum(i, o)).s(details).s(`}`)
}

// sum is the reported total: -1 for the negative report, not -2.
func (r Report) sum(in, out int64) int64 {
	if r == ReportNegative {
		return -1
	}
	return in + out
}

// toolJSON answers for any path that is no LLM endpoint.
func toolJSON(b text, a *answer) text {
	return b.s(`{"ok":true,"method":`).q(a.method).s(`,"path":`).q(a.path).s(`}`)
}
