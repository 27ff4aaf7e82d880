// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// members is what one pass over the top level of a body finds, in the body's own memory. Only the top level counts; what
// looks like a member within a text is text. Of members that come twice the last one counts, as in most providers'
// parsers, but of numbers the largest, so that nobody hides a large one behind a small one.
type members struct {
	values  [numMembers]string // raw; empty: not there
	numbers [numNumbers]int64
	body    string
	text    string           // in which the members are: the body, or its outline
	others  [maxOthers]other // members that say nothing about the cost: who asks, perhaps
	n       int              // of them in the body, which may be more
	whole   bool             // the body is an object up to its end
	models  [3]string        // raw: the first one that it names, and the first and the last that it names as it should
}

type other struct{ key, value string }

const (
	maxOthers = 16

	// maxModel is the longest model name in bytes; longer ones are cut.
	maxModel = 128
)

// read finds the members; false if the body is no JSON object. Of part of a body the last member does not count, for it may be
// cut off; an outline of all of it says what counts in place of the part.
func (m *members) read(body []byte, part bool, o *Outline) bool {
	*m = members{}
	for i := range m.numbers {
		m.numbers[i] = -1
	}
	m.body = strings.TrimPrefix(unsafe.String(unsafe.SliceData(body), len(body)), byteOrderMark)
	m.text = m.body
	if o != nil {
		m.text, part = unsafe.String(unsafe.SliceData(o.text), o.end), false
	}
	var last other
	m.whole = jsonwalk.Members(m.text, func(key, value string) bool {
		m.note(last)
		last = other{key, value}
		return true
	})
	if !part {
		m.note(last)
	}
	i := jsonwalk.SkipSpace(m.body, 0)
	return i < len(m.body) && m.body[i] == '{'
}

func (m *members) note(o other) {
	o.key = jsonwalk.Unescape(o.key)
	k := memberOf(o.key)
	if k == numMembers {
		k = memberOf(folded(o.key))
	}
	if k == numMembers {
		if o.value != "" {
			m.others[min(m.n, maxOthers-1)] = o
			m.n++
		}
		return
	}
	m.values[k] = o.value
	if k == kModel {
		m.noteModel(o)
	}
	if k < numNumbers {
		m.numbers[k] = max(m.numbers[k], wholeNumber(o.value))
	}
}

// folded is a key as parsers have it that take Model for model, as Go's does. To that one these two are letters, too.
func folded(key string) string {
	if strings.IndexByte(key, 0xc5) < 0 && strings.IndexByte(key, 0xe2) < 0 { // with which these two begin
		return lowerASCII(key)
	}
	return strings.ReplaceAll(strings.ReplaceAll(lowerASCII(key), "\u017f", "s"), "\u212a", "k")
}

// byteOrderMark may stand before JSON; parsers skip it.
const byteOrderMark = "\ufeff"

// value gives a member.
func (m *members) value(k member) jsonwalk.Value { return jsonwalk.Value(m.values[k]) }

// has says whether a member is there and says something.
func (m *members) has(k member) bool { return m.values[k] != "" && m.values[k] != "null" }

// number is a member that should be a positive number; -1 if it is not there, null, of another type, or not positive.
func (m *members) number(k member) int64 { return m.numbers[k] }

// count is a member that multiplies: 1 if it is not there.
func (m *members) count(k member) int64 { return bounded(m.numbers[k]) }

func bounded(n int64) int64 { return min(max(n, 1), 1<<16) }

// model is the model's name, cut to maxModel bytes.
func (m *members) model() string {
	name := m.value(kModel).Str()
	return name[:min(len(name), maxModel)]
}

func (m *members) noteModel(o other) {
	if m.models[0] == "" {
		m.models[0] = o.value
	}
	if o.key != "model" {
		return
	}
	if m.models[1] == "" {
		m.models[1] = o.value
	}
	m.models[2] = o.value
}

// OtherModels are the models that the body names beside the request's, as far as a parser may take one for it: one reads the first,
// another the last, and a third that with the key in capitals.
func (r *Reader) OtherModels() (names [3]string) {
	for i, raw := range r.members.models {
		if raw != r.members.values[kModel] {
			name := jsonwalk.Value(raw).Str()
			names[i] = name[:min(len(name), maxModel)]
		}
	}
	return names
}

// Member gives the value of a member of the body by its path; "" if it is no string and no number. The body must still be there.
func (r *Reader) Member(path string) string {
	head, rest, nested := strings.Cut(path, ".")
	var v jsonwalk.Value
	if k := memberOf(head); k < numMembers {
		v = r.members.value(k)
	} else {
		v = r.members.other(head)
	}
	if nested {
		v = v.Get(rest)
	}
	switch v.Type() {
	case jsonwalk.String:
		return strings.Clone(v.Str())
	case jsonwalk.Number:
		if strings.Trim(string(v), "-0123456789") == "" {
			return strings.Clone(string(v))
		}
		return strconv.FormatFloat(v.Num(), 'f', -1, 64) // 1e3 is the same caller as 1000
	}
	return ""
}

// other is the last member with that key; the body is read again if it has more than are kept.
func (m *members) other(key string) (value jsonwalk.Value) {
	if m.n > maxOthers {
		jsonwalk.Members(m.text, func(k, v string) bool {
			if jsonwalk.Unescape(k) == key {
				value = jsonwalk.Value(v)
			}
			return true
		})
		return value
	}
	for _, o := range m.others[:m.n] {
		if o.key == key {
			value = jsonwalk.Value(o.value)
		}
	}
	return value
}

// nested is the largest of some members of an object that should be positive numbers; -1 if it has none of them.
func nested(object string, names ...string) int64 {
	n := int64(-1)
	jsonwalk.Members(object, func(key, value string) bool {
		key = jsonwalk.Unescape(key)
		for _, name := range names {
			if key == name {
				n = max(n, wholeNumber(value))
			}
		}
		return true
	})
	return n
}

func wholeNumber(raw string) int64 {
	if n, err := strconv.ParseUint(raw, 10, 40); err == nil && n > 0 { // nearly all of them
		return int64(n)
	}
	v := jsonwalk.Value(raw)
	n := v.Num()
	if v.Type() == jsonwalk.String { // some servers take "900" for 900
		n, _ = strconv.ParseFloat(strings.TrimSpace(v.Str()), 64)
	}
	if !(n > 0) {
		return -1
	}
	return int64(math.Ceil(min(n, maxDeclared)))
}
