// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
	"github.com/weirproxy/weir/policy/tokens"
)

// An Answer reads a provider's answer as it passes, in chunks of any size, and keeps what it says about usage. Nothing of
// it is held back or changed.
type Answer struct {
	api     API
	set     *tokens.Set
	family  tokens.Family
	usage   Usage
	output  int64 // tokens of text seen
	failed  bool  // an error in place of an answer
	pending bool  // the work goes on in the background
	over    bool  // the last event has come
	covered int64 // of output: what usage includes
	sniff   bool  // the first byte is going to tell what it is
	sse     *sseReader
	scanner *jsonScanner
}

// Start begins an answer to a call of the API with this content type. Answers that cannot hold usage are not read.
func (r *Reader) Start(a *Answer, api API, family tokens.Family, contentType string) {
	*a = Answer{api: api, set: &r.set, family: family, usage: NoUsage()}
	if !api.Metered() {
		return
	}
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); {
	case media == "text/event-stream":
		a.sse = new(sseReader)
	case strings.HasSuffix(media, "json"):
		a.scanner = newJSONScanner(wantedMembers)
	case media == "", media == "text/plain":
		a.sniff = true
	}
}

// Reads says whether the answer is read at all.
func (a *Answer) Reads() bool { return a.sse != nil || a.scanner != nil || a.sniff }

// Usage is what the provider has said so far.
func (a *Answer) Usage() Usage { return a.usage }

// Output is how many tokens of output have been seen, for an answer that does not say its usage: counted in a stream, guessed
// from the length otherwise.
func (a *Answer) Output() int64 {
	if a.scanner != nil {
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
	if a.sniff {
		chunk = bytes.TrimLeft(chunk, " \r\n\t")
		if len(chunk) == 0 {
			return
		}
		a.sniff = false
		if chunk[0] == '{' {
			a.scanner = newJSONScanner(wantedMembers)
		} else {
			a.sse = new(sseReader)
		}
	}
	switch {
	case a.sse != nil:
		a.sse.feed(chunk, a.event)
	case a.scanner != nil:
		a.scanner.feed(chunk, a.member)
	}
}

// End takes the end of the answer.
func (a *Answer) End() {
	if a.sse != nil {
		a.sse.end(a.event)
	}
}

func parse(b []byte) gjson.Result { return gjson.Parse(text(b)) }

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// wantedMembers are the top-level members of a JSON answer that are read.
var wantedMembers = []string{"usage", "error", "status"}

// member takes a top-level member of a JSON answer.
func (a *Answer) member(which int, value []byte) {
	v := parse(value)
	switch which {
	case 0:
		a.usage.merge(v)
	case 1:
		a.failed = v.IsObject()
	case 2:
		a.pending = a.api == Responses && (v.Str == "queued" || v.Str == "in_progress")
	}
}

// event takes the data of one event of a stream.
func (a *Answer) event(data []byte) {
	defer a.mark(data, a.usage)
	e := parse(data)
	if !e.IsObject() { // [DONE]
		return
	}
	switch a.api {
	case Chat, Completions:
		a.chatEvent(e)
	case Responses:
		a.responseEvent(e)
	case Messages:
		a.messageEvent(e)
	}
}

func (a *Answer) chatEvent(e gjson.Result) {
	e.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "usage":
			a.usage.merge(v)
		case "choices":
			v.ForEach(func(_, choice gjson.Result) bool {
				a.saw(choice.Get("text"))
				a.sawAll(choice.Get("delta"), 0)
				return true
			})
		case "error":
			a.fail(v)
		}
		return true
	})
}

func (a *Answer) responseEvent(e gjson.Result) {
	kind := e.Get("type").Str
	switch {
	case strings.HasSuffix(kind, ".delta"):
		a.saw(e.Get("delta"))
	case kind == "error" || kind == "response.failed":
		a.fail(e)
	}
	a.usage.merge(e.Get("response.usage"))
}

func (a *Answer) messageEvent(e gjson.Result) {
	switch e.Get("type").Str {
	case "message_start":
		a.usage.merge(e.Get("message.usage"))
	case "content_block_delta":
		a.sawAll(e.Get("delta"), 0)
	case "message_delta":
		a.usage.merge(e.Get("usage"))
	case "error":
		a.fail(e)
	}
}

// fail takes an error; after output it is the end of an answer, before it there was none.
func (a *Answer) fail(v gjson.Result) {
	if v.Type != gjson.Null && a.output == 0 {
		a.failed = true
	}
}

// sawAll counts all texts of a delta, whatever their names (content, reasoning, arguments …), but not its labels. What is
// nested deeper than any provider does counts as the JSON that it is, see maxNesting.
func (a *Answer) sawAll(delta gjson.Result, nesting int) {
	if nesting == 2*maxNesting {
		a.output += a.set.Count(a.family, delta.Raw)
		return
	}
	delta.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type", "role", "id", "index", "name", "signature":
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

func (a *Answer) saw(v gjson.Result) {
	if v.Type == gjson.String && len(v.Raw) > 2 {
		a.output += a.set.CountJSON(a.family, v.Raw[1:len(v.Raw)-1])
	}
}
