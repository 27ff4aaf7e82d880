// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// A member is a top-level member of a request that says something about its cost.
type member uint8

const (
	kMessages member = iota
	kTools
	kFunctions
	kResponseFormat
	kPrediction
	kInput
	kInstructions
	kText
	kPrompt
	kSuffix
	kSystem
	kMaxTokens
	kMaxCompletionTokens
	kMaxOutputTokens
	kN
	kBestOf
	kModel
	kStream
	kStreamOptions
	numMembers
)

// memberOf finds a member by its key; numMembers if it says nothing about the cost. (A switch: a map would hash each key.)
func memberOf(key string) member {
	switch key {
	case "messages":
		return kMessages
	case "tools":
		return kTools
	case "functions":
		return kFunctions
	case "response_format":
		return kResponseFormat
	case "prediction":
		return kPrediction
	case "input":
		return kInput
	case "instructions":
		return kInstructions
	case "text":
		return kText
	case "prompt":
		return kPrompt
	case "suffix":
		return kSuffix
	case "system":
		return kSystem
	case "max_tokens":
		return kMaxTokens
	case "max_completion_tokens":
		return kMaxCompletionTokens
	case "max_output_tokens":
		return kMaxOutputTokens
	case "n":
		return kN
	case "best_of":
		return kBestOf
	case "model":
		return kModel
	case "stream":
		return kStream
	case "stream_options":
		return kStreamOptions
	}
	return numMembers
}

// members is what one pass over the top level of a body finds, in the body's own memory. Only the top level counts; what
// looks like a member within a text is text. Of members that come twice the last one counts, as in most providers'
// parsers, but of numbers the largest, so that nobody hides a large one behind a small one.
type members struct {
	values  [numMembers]string // raw; empty: not there
	numbers [numMembers]int64
	others  [maxOthers]other // members that say nothing about the cost: who asks, perhaps
	n       int
}

type other struct{ key, value string }

const (
	maxOthers = 16

	// maxModel is the longest model name in bytes; longer ones are cut.
	maxModel = 128
)

// read finds the members; false if the body is no JSON object.
func (m *members) read(body []byte) bool {
	*m = members{}
	for i := range m.numbers {
		m.numbers[i] = -1
	}
	s := unsafe.String(unsafe.SliceData(body), len(body))
	if i := skipSpace(s, 0); i == len(s) || s[i] != '{' {
		return false
	}
	eachMember(s, func(key, value string) bool {
		if strings.IndexByte(key, '\\') >= 0 {
			key = gjson.Parse(`"` + key + `"`).Str
		}
		switch k := memberOf(key); {
		case k < numMembers:
			m.values[k] = value
			if k >= kMaxTokens && k <= kBestOf {
				m.numbers[k] = max(m.numbers[k], wholeNumber(value))
			}
		case m.n < maxOthers:
			m.others[m.n] = other{key, value}
			m.n++
		}
		return true
	})
	return true
}

// value gives a member as gjson has it.
func (m *members) value(k member) gjson.Result { return gjson.Parse(m.values[k]) }

// number is a member that should be a positive number; -1 if it is not there, null, of another type, or not positive.
func (m *members) number(k member) int64 { return m.numbers[k] }

// count is a member that multiplies: 1 if it is not there.
func (m *members) count(k member) int64 { return min(max(m.numbers[k], 1), 1<<16) }

// model is the model's name, cut to maxModel bytes.
func (m *members) model() string {
	raw := m.values[kModel]
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	name := raw[1 : len(raw)-1]
	if strings.IndexByte(name, '\\') >= 0 {
		name = gjson.Parse(raw).Str
	}
	return name[:min(len(name), maxModel)]
}

// Member gives the value of a member of the body that says nothing about its cost, by its path; "" if it is no string and
// no number. It is valid until the next body is opened.
func (r *Reader) Member(path string) string {
	head, rest, nested := strings.Cut(path, ".")
	for _, o := range r.members.others[:r.members.n] {
		if o.key != head {
			continue
		}
		v := gjson.Parse(o.value)
		if nested {
			v = v.Get(rest)
		}
		if v.Type == gjson.String || v.Type == gjson.Number {
			return strings.Clone(v.String())
		}
	}
	return ""
}

func wholeNumber(raw string) int64 {
	if n, err := strconv.ParseUint(raw, 10, 40); err == nil && n > 0 { // nearly all of them
		return int64(n)
	}
	v := gjson.Parse(raw)
	if v.Type != gjson.Number || !(v.Num > 0) {
		return -1
	}
	return int64(math.Ceil(min(v.Num, maxDeclared)))
}
