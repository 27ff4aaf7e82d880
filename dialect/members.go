// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
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
	numMembers
)

var memberNames = map[string]member{
	"messages": kMessages, "tools": kTools, "functions": kFunctions, "response_format": kResponseFormat,
	"prediction": kPrediction, "input": kInput, "instructions": kInstructions, "text": kText, "prompt": kPrompt,
	"suffix": kSuffix, "system": kSystem, "max_tokens": kMaxTokens, "max_completion_tokens": kMaxCompletionTokens,
	"max_output_tokens": kMaxOutputTokens, "n": kN, "best_of": kBestOf,
}

// members is what one pass over the top level of a body finds. Only the top level counts; what looks like a member within
// a text is text. Of members that come twice the last one counts, as in most providers' parsers, but of numbers the
// largest, so that nobody hides a large one behind a small one.
type members struct {
	model        string
	stream       bool
	includeUsage bool
	values       [numMembers]gjson.Result
	numbers      [numMembers]int64
}

// maxModel is the longest model name in bytes; longer ones are cut.
const maxModel = 128

// read finds the members; false if the body is no JSON object. They lie in the body's own memory.
func (m *members) read(body []byte) bool {
	for i := range m.numbers {
		m.numbers[i] = -1
	}
	root := gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body)))
	if !root.IsObject() {
		return false
	}
	root.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "model":
			m.model = v.Str[:min(len(v.Str), maxModel)]
		case "stream":
			m.stream = v.Type == gjson.True
		case "stream_options":
			m.includeUsage = v.Get("include_usage").Type == gjson.True
		default:
			if k, ok := memberNames[key.Str]; ok {
				m.values[k] = v
				m.numbers[k] = max(m.numbers[k], wholeNumber(v))
			}
		}
		return true
	})
	return true
}

// number is a member that should be a positive number; -1 if it is not there, null, of another type, or not positive.
func (m *members) number(k member) int64 { return m.numbers[k] }

// count is a member that multiplies: 1 if it is not there.
func (m *members) count(k member) int64 { return min(max(m.numbers[k], 1), 1<<16) }

func wholeNumber(v gjson.Result) int64 {
	if v.Type != gjson.Number || !(v.Num > 0) {
		return -1
	}
	return int64(math.Ceil(min(v.Num, maxDeclared)))
}
