// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// maxBody is how much of a body is looked at: the longest refusal known (Gemini's, with all its details) has 3 KiB.
const maxBody = 8 << 10

// told is what the body of a refusal says, in the words of whoever wrote it.
type told struct {
	codes   [4]string // the most telling first: detail code, code, type, status
	message string
	wait    int64     // ns
	hasWait bool      // RetryInfo
	quota   Dimension // of the longest window that is violated
}

// Places in told.codes.
const (
	atDetail = iota
	atCode
	atType
	atStatus
)

// text is the body's beginning as a string, without copying it.
func (r *Reply) text() string {
	b := r.Body[:min(len(r.Body), maxBody)]
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// read reads an error in any of the providers' shapes, bare or as the data of a stream's event, or wrapped in an array.
func (t *told) read(body string) {
	body = eventData(body)
	for document := range items(body) {
		if !isObject(document) {
			t.message = strings.TrimSpace(unquote(document))
			break
		}
		t.readDocument(document)
		break
	}
	if m := t.message; m != "" && (m[0] == '{' || m[0] == '[' || m[0] == '<') {
		t.message = "" // an answer that somebody wrapped, or a web page: its words are not about this call
	}
}

// readDocument reads the members around an error, or of one that lies flat.
func (t *told) readDocument(document string) {
	for key, value := range members(document) {
		switch key {
		case "error":
			if isObject(value) {
				t.readError(value)
			} else if t.message == "" {
				t.message = unquote(value) // Ollama
			}
		case "response": // response.failed of OpenAI's Responses
			for key, value := range members(value) {
				if key == "error" {
					t.readError(value)
				}
			}
		default:
			t.readMember(key, value, false)
		}
	}
}

func (t *told) readError(object string) {
	for key, value := range members(object) {
		t.readMember(key, value, true)
	}
}

// readMember takes a member of the error, or one beside it, which fills gaps only.
func (t *told) readMember(key, value string, inner bool) {
	set := func(p *string) {
		if s := unquote(value); s != "" && (inner || *p == "") {
			*p = s
		}
	}
	switch key {
	case "code":
		set(&t.codes[atCode])
	case "type", "__type":
		set(&t.codes[atType])
	case "status":
		set(&t.codes[atStatus])
	case "message", "detail", "title", "Message":
		set(&t.message)
	case "details":
		t.readDetails(value)
	}
}

// eventData is the data of a stream's event, if the body begins with one.
func eventData(body string) string {
	body = strings.TrimLeft(strings.TrimPrefix(body, "\ufeff"), " \r\n\t")
	if strings.HasPrefix(body, "event:") {
		if _, rest, ok := strings.Cut(body, "\n"); ok {
			body = rest
		}
	}
	if data, ok := strings.CutPrefix(body, "data:"); ok {
		data, _, _ = strings.Cut(data, "\n")
		return strings.TrimLeft(data, " ")
	}
	return body
}

// refuses says whether an answer with a good status is an error all the same: its first member is an error object, or says
// that it is one. Nothing else is looked at, for what a model writes may quote any error.
func refuses(body string) bool {
	body = eventData(body)
	if i := jsonwalk.SkipSpace(body, 0); i < len(body) && body[i] == '[' {
		body = body[jsonwalk.SkipSpace(body, i+1):]
	}
	for key, value := range members(body) {
		return key == "error" && isObject(value) ||
			key == "type" && (value == `"error"` || value == `"response.failed"`)
	}
	return false
}
