// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// A stream of OpenAI's kind says its usage only if it was asked to, in one more event at its end. Where the policy allows,
// weir asks for it, and takes the event out again if the caller did not.

// includeUsage is what asks.
const includeUsage = `"include_usage":true`

// AskForUsage gives the body of a streaming chat or completion with stream_options.include_usage set. Nothing else of it
// changes. It returns nil for a body that is no JSON object.
func AskForUsage(body []byte) []byte {
	s := unsafe.String(unsafe.SliceData(body), len(body))
	start := strings.IndexByte(s, '{')
	if start < 0 || strings.TrimLeft(strings.TrimPrefix(s[:start], byteOrderMark), " \t\r\n") != "" {
		return nil
	}
	options := ""
	jsonwalk.Members(s[start:], func(key, value string) bool {
		if jsonwalk.Unescape(key) == "stream_options" {
			options = value // the last one counts
		}
		return true
	})
	out := make([]byte, 0, len(body)+64)
	if options == "" {
		out = append(append(out, s[:start+1]...), `"stream_options":{`+includeUsage+`}`...)
		if rest := strings.TrimLeft(s[start+1:], " \t\r\n"); rest != "" && rest[0] != '}' {
			out = append(out, ',')
		}
		return append(out, s[start+1:]...)
	}
	at := int(uintptr(unsafe.Pointer(unsafe.StringData(options))) - uintptr(unsafe.Pointer(unsafe.StringData(s))))
	out = append(append(out, s[:at]...), '{')
	jsonwalk.Members(options, func(key, value string) bool {
		if jsonwalk.Unescape(key) != "include_usage" {
			out = append(append(append(append(out, '"'), key...), `":`...), value...)
			out = append(out, ',')
		}
		return true
	})
	out = append(append(out, includeUsage...), '}')
	return append(out, s[at+len(options):]...)
}

// A UsageCutter takes the event that only says usage out of a stream in which it came because weir asked for it. An event that
// is not complete is held back until it is, or is too long to be that one.
type UsageCutter struct {
	held   []byte // the beginning of an event
	long   bool   // the event that is passing is too long to be the one
	inLine bool   // and has passed in the middle of a line
}

// maxUsageEvent is how long the event may be: providers write a few hundred bytes.
const maxUsageEvent = 16 << 10

// Cut takes the next chunk and gives what passes now; end: it is the last one. What it gives is valid until the next call.
func (c *UsageCutter) Cut(chunk []byte, end bool) []byte {
	data := append(c.held, chunk...)
	c.held = nil
	out := data[:0:0]
	for len(data) > 0 {
		n := eventEnd(data, c.long && c.inLine)
		if n < 0 {
			break
		}
		if c.long || !saysOnlyUsage(data[:n]) {
			out = append(out, data[:n]...)
		}
		c.long, data = false, data[n:]
	}
	switch {
	case len(data) == 0, end && !c.long && saysOnlyUsage(data):
	case end:
		out = append(out, data...)
	case c.long, len(data) > maxUsageEvent:
		c.long = true
		out = c.pass(out, data)
	default:
		c.held = bytes.Clone(data)
	}
	return out
}

// pass lets a part of a long event go, but for a carriage return at its end: a line feed may follow.
func (c *UsageCutter) pass(out, data []byte) []byte {
	if n := len(data) - 1; data[n] == '\r' {
		c.held, data = []byte{'\r'}, data[:n]
	}
	if n := len(data) - 1; n >= 0 {
		c.inLine = data[n] != '\n' && data[n] != '\r'
	}
	return append(out, data...)
}

// eventEnd is where the first event of a stream ends, past its blank line; -1 if it has not ended. inLine: the stream begins in
// the middle of a line.
func eventEnd(b []byte, inLine bool) int {
	blank := !inLine // the line so far
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\r', '\n':
			if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
				i++
			} else if i+1 == len(b) && b[i] == '\r' {
				return -1 // a line feed may follow
			}
			if blank {
				return i + 1
			}
			blank = true
		default:
			blank = false
		}
	}
	return -1
}

// saysOnlyUsage says whether an event is one of usage without a choice.
func saysOnlyUsage(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) || !bytes.Contains(event, []byte(`"choices"`)) {
		return false
	}
	e := parse(dataOf(event))
	noChoice := func(string) bool { return false }
	return e.Get("usage").IsObject() && jsonwalk.Items(string(e.Get("choices")), noChoice)
}

// dataOf joins the data lines of one event.
func dataOf(event []byte) (data []byte) {
	for line := range bytes.FieldsFuncSeq(event, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, value...), '\n')
		}
	}
	return data
}
