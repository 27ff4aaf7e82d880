// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// An Answer reads a provider's answer as it passes, in chunks of any size, and keeps what it says about usage. Nothing of
// it is held back or changed.
type Answer struct {
	form    *form
	set     *tokens.Set
	family  tokens.Family
	usage   Usage
	output  int64  // tokens of text seen
	failed  bool   // an error in place of an answer
	refusal []byte // the error, in a form of its own: {"error":…}
	pending bool   // the work goes on in the background
	over    bool   // the last event has come
	covered int64  // of output: what usage includes
	framing framing
	framer  framer // of a stream, once it is known that it is one
	scans   bool   // it is one JSON document, of which this is the scanner
	scanner jsonScanner
	event   eventBuffer
}

// A framing is what an answer may be, by its content type.
type framing uint8

const (
	unread framing = iota
	unsure         // the first byte is going to tell
	lines          // JSON documents, each on its own line
	known          // framer or scans is set
)

// A framer cuts a stream into events, and gives each to the answer in parts, and then its end.
type framer interface {
	feed(chunk []byte, to *Answer)
	end(to *Answer)
}

// Start begins an answer to a call of the API with this content type. Answers that cannot hold usage are not read.
func (r *Reader) Start(a *Answer, api API, family tokens.Family, contentType string) {
	*a = Answer{}
	a.form, a.set, a.family, a.usage = forms[api], &r.set, family, NoUsage()
	a.usage.rule = a.form.rule
	if !api.Metered() {
		return
	}
	media, _, _ := strings.Cut(contentType, ";")
	switch media = lowerASCII(strings.TrimSpace(media)); {
	case strings.HasSuffix(media, "ndjson"), strings.HasSuffix(media, "jsonl"), strings.HasSuffix(media, "stream+json"):
		a.framing = lines
	case media == "application/vnd.amazon.eventstream":
		a.framing, a.framer = known, new(frameReader)
	case media == "", media == "text/plain", media == "text/event-stream", strings.HasSuffix(media, "json"):
		a.framing = unsure
	}
}

// Reads says whether the answer is read at all.
func (a *Answer) Reads() bool { return a.framing != unread }

// Usage is what the provider has said so far.
func (a *Answer) Usage() Usage { return a.usage }

// Output is how many tokens of output have been seen, for an answer that does not say its usage: counted in a stream, guessed
// from the length otherwise.
func (a *Answer) Output() int64 {
	if a.scans && a.form.declared != nil {
		return max(a.output, (a.scanner.text+bytesPerToken-1)/bytesPerToken)
	}
	return a.output
}

// Failed says whether the answer was an error although its status was not, with no output before it.
func (a *Answer) Failed() bool { return a.failed && !a.usage.Said() }

// Pending says whether the provider has only taken the call, and works on it in the background.
func (a *Answer) Pending() bool { return a.pending }

// Feed takes the next chunk.
func (a *Answer) Feed(chunk []byte) {
	if a.framing == unsure || a.framing == lines {
		if chunk = trimStart(chunk); len(chunk) == 0 {
			return
		}
		a.know(chunk[0])
	}
	switch {
	case a.framer != nil:
		a.framer.feed(chunk, a)
	case a.scans:
		a.scanner.feed(chunk, a)
	}
}

// trimStart drops space and a byte order mark, which may come in pieces.
func trimStart(b []byte) []byte {
	for len(b) > 0 && (b[0] <= ' ' || strings.IndexByte(byteOrderMark, b[0]) >= 0) {
		b = b[1:]
	}
	return b
}

// know takes the first byte that is no space. It tells more than the content type, which some gateways get wrong.
func (a *Answer) know(first byte) {
	switch {
	case first == '[', a.framing == lines:
		a.framer = new(documentReader)
	case first == '{':
		a.scans = true
		a.scanner.begins(a.form.answer)
	default:
		a.framer = new(sseReader)
	}
	a.framing = known
}

// End takes the end of the answer.
func (a *Answer) End() {
	if a.framer != nil {
		a.framer.end(a)
	}
}

func parse(b []byte) jsonwalk.Value { return jsonwalk.Parse(text(b)) }

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// fail takes an error; after output it is the end of an answer, before it there was none. What is null or empty is none.
func (a *Answer) fail(v jsonwalk.Value) {
	if !v.IsObject() && v.Quoted() == "" {
		return
	}
	a.failed = a.failed || a.output == 0
	for _, inner := range [...]string{"error", "response.error"} { // v may be the event that has it
		if e := v.Get(inner); e.IsObject() {
			v = e
			break
		}
	}
	a.refuse(string(v))
}

// maxRefusal is how long an error may be that is kept.
const maxRefusal = 4 << 10

// refuse keeps the first error of the answer.
func (a *Answer) refuse(e string) {
	if a.refusal == nil && len(e) <= maxRefusal {
		a.refusal = append(append([]byte(`{"error":`), e...), '}')
	}
}

// Refusal is an error within an answer whose status said that there was none, as an object {"error":…}; nil if there was none.
func (a *Answer) Refusal() []byte { return a.refusal }

// sawAll counts all texts of a delta, whatever their names (content, reasoning, arguments …), but not its labels. What is
// nested deeper than any provider does counts as the JSON that it is, see maxNesting.
func (a *Answer) sawAll(delta jsonwalk.Value, nesting int) {
	if nesting == 2*maxNesting {
		a.output += a.set.Count(a.family, string(delta))
		return
	}
	delta.ForEach(func(key string, v jsonwalk.Value) bool {
		switch key {
		case "type", "role", "id", "index", "name", "signature", "redactedContent", "data":
		default:
			if v.IsObject() || v.IsArray() {
				a.sawAll(v, nesting+1)
			} else {
				a.saw(v)
			}
		}
		return true
	})
}

func (a *Answer) saw(v jsonwalk.Value) {
	if text := v.Quoted(); text != "" {
		a.output += a.set.CountJSON(a.family, text)
	}
}
