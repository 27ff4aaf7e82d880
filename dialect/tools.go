// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// OpenAI's models do not see the JSON of tools but TypeScript made of it. What the whole costs beside that text was found
// out by many (openai-chat-tokens has the rule): 9, or 5 and a line end if there is a system message that they share, and
// what the choice of a tool adds.
const (
	toolsFrame     = 9
	toolsShared    = -4
	toolChoiceNone = 1
	toolChoiceName = 4
)

// What others make of tools. Anthropic publishes the size of the text that it puts before them (346 for current models, 264
// to 530 for some older ones). Qwen's template has a preamble, and blanks in its JSON. All the rest count as their JSON.
const (
	anthropicToolsFrame = 346
	qwenToolsPercent    = 128
)

// tools counts the definitions of tools, in whatever form the dialect has them.
func (r *Reader) tools(v jsonwalk.Value) int64 {
	if !v.IsArray() || v == "[]" {
		return r.text(v)
	}
	switch r.family {
	case tokens.O200k, tokens.Cl100k:
		return r.renderTools(v)
	case tokens.Claude, tokens.Claude47, tokens.Claude2:
		return anthropicToolsFrame + r.compact(v)
	case tokens.Qwen:
		return r.compact(v) * qwenToolsPercent / 100
	}
	return r.compact(v)
}

// toolChoice is what the choice of a tool adds for OpenAI, and the first system message with tools.
func (r *Reader) toolChoice(m *members, messages jsonwalk.Value) (n int64) {
	if !r.family.OpenAI() || !m.has(kTools) && !m.has(kFunctions) {
		return 0
	}
	for _, key := range []string{"tool_choice", "function_call"} {
		switch choice := m.other(key); {
		case choice.Str() == "none":
			n += toolChoiceNone
		case choice.IsObject():
			name := choice.Get("function.name")
			if !name.Exists() {
				name = choice.Get("name")
			}
			n += toolChoiceName + r.text(name)
		}
	}
	messages.ForEach(func(_ string, msg jsonwalk.Value) bool {
		if msg.Get("role").Str() != "system" {
			return true
		}
		n += toolsShared + r.lineEnd(msg.Get("content"))
		return false
	})
	return n
}

// lineEnd is what a line end adds behind a text: nothing behind most signs, for the two are one token.
func (r *Reader) lineEnd(text jsonwalk.Value) int64 {
	if text.Type() != jsonwalk.String {
		return 1
	}
	s := text.Str()
	if i := strings.LastIndexByte(s, ' '); i > 0 {
		s = s[i:] // a blank begins a piece
	}
	if len(s) > 256 {
		return 1
	}
	return r.set.Count(r.family, s+"\n") - r.set.Count(r.family, s)
}

// compact counts JSON without the blanks between its parts, as servers write it again.
func (r *Reader) compact(v jsonwalk.Value) int64 {
	if v.Type() == jsonwalk.Null {
		return 0
	}
	out := r.scratch()
	for raw := string(v); raw != ""; {
		i := strings.IndexAny(raw, "\" \n\r\t")
		switch {
		case i < 0:
			i = len(raw)
			out.write(raw)
		case raw[i] == '"':
			end := jsonwalk.SkipString(raw, i)
			out.write(raw[:end])
			i = end
		default:
			out.write(raw[:i])
			i++
		}
		raw = raw[i:]
	}
	return out.text.Count()
}

// scratch is text that is made to be counted, and never whole in memory.
type scratch struct {
	text  tokens.Text
	depth int // of the schema that is being written
}

func (r *Reader) scratch() *scratch { return &scratch{text: r.set.Text(r.family)} }

func (s *scratch) write(text string) { s.text.WriteString(text) }
