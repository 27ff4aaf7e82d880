// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// A rewriter changes values of a body and nothing else of it.
type rewriter struct {
	body  string
	start int // of the object, behind a byte order mark
	edits []edit
}

// An edit puts a text in place of a part of a body.
type edit struct {
	at, end int
	text    string
}

// open finds the object that a body is; false if it is none, or not whole.
func (w *rewriter) open(body []byte) bool {
	w.body = unsafe.String(unsafe.SliceData(body), len(body))
	w.start = len(w.body) - len(strings.TrimPrefix(w.body, byteOrderMark))
	return jsonwalk.Members(w.body[w.start:], func(string, string) bool { return true })
}

// isOneOf says whether a key is one of these names to any parser: see folded.
func isOneOf(key string, names []string) bool {
	key = jsonwalk.Unescape(key)
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(key, name) })
}

// place is where a part of the body begins.
func (w *rewriter) place(part string) int {
	return int(uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(w.body))))
}

func (w *rewriter) replace(part, text string) {
	at := w.place(part)
	w.edits = append(w.edits, edit{at, at + len(part), text})
}

// insert puts a member at the beginning of an object of the body.
func (w *rewriter) insert(object, member string) {
	at := jsonwalk.SkipSpace(object, 0) + 1
	if next := jsonwalk.SkipSpace(object, at); object[next] != '}' {
		member += ","
	}
	at += w.place(object)
	w.edits = append(w.edits, edit{at, at, member})
}

// bytes gives the body with all changes, which were made from its beginning to its end.
func (w *rewriter) bytes() []byte {
	out, from := make([]byte, 0, len(w.body)+256), 0
	for _, e := range w.edits {
		out = append(append(out, w.body[from:e.at]...), e.text...)
		from = e.end
	}
	return append(out, w.body[from:]...)
}
