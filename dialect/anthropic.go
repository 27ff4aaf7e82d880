// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

func (r *Reader) messages(m *members) int64 {
	n := perRequest + r.content(m.value(kSystem)) + r.tools(m.value(kTools))
	m.value(kMessages).ForEach(func(_ string, msg jsonwalk.Value) bool {
		n += perMessage + r.content(msg.Get("content"))
		return true
	})
	return n
}

// document counts a document block: its text if it is text, else by its bytes.
func (r *Reader) document(source jsonwalk.Value) int64 {
	switch source.Get("type").Str() {
	case "text":
		return r.text(source.Get("data"))
	case "content":
		return r.content(source.Get("content"))
	}
	return r.document64(source.Get("media_type").Str(), encoded(source.Get("data").Quoted()))
}
