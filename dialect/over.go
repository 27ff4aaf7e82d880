// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"bytes"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// Over says whether the last event of a stream has come: nothing more is going to be said, even if the stream is cut off before
// its end, as clients do that stop reading there.
func (a *Answer) Over() bool { return a.over }

// Since is how many tokens of output have been seen since the provider last said how many there were.
func (a *Answer) Since() int64 { return a.output - a.covered }

// mark looks at an event after it was read. What is said in it includes its own text.
func (a *Answer) mark(data []byte, before Usage) {
	a.over = a.over || isLast(data)
	if a.usage.Output != before.Output {
		a.covered = a.output
	}
}

// isLast says whether an event ends a stream. Its type is its first member, in all dialects that have one.
func isLast(data []byte) (last bool) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		return true
	}
	jsonwalk.Members(text(data), func(key, value string) bool {
		switch value {
		case `"message_stop"`, `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
			last = key == "type"
		}
		return false
	})
	return last
}
