// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

// What a chat costs beside its texts, as OpenAI's cookbook publishes it ("How to count tokens with tiktoken"): three tokens
// a message, the role's one, one more for a name, and three that open the answer.
const (
	perMessage = 4
	perName    = 1
	perRequest = 3
)

// What nothing better is known of: a picture or a file that is only named, 85 to 3000 tokens.
const (
	perImage          = 1500
	perAudioOrFile    = 1500
	defaultCompletion = 16 // OpenAI's max_tokens for the old completions
)

// perToolCall is what a call of a tool costs beside its name and arguments (openai-chat-tokens).
const perToolCall = 3

func (r *Reader) chat(m *members) int64 {
	n := int64(perRequest)
	messages := m.value(kMessages)
	messages.ForEach(func(_ string, msg jsonwalk.Value) bool {
		n += r.chatMessage(msg)
		return true
	})
	n += r.toolChoice(m, messages) + r.tools(m.value(kTools)) + r.tools(m.value(kFunctions))
	n += r.compact(m.value(kResponseFormat).Get("json_schema")) + r.served(m)
	return n + r.content(m.value(kPrediction).Get("content"))
}

// served counts what servers of open models put into a prompt beside the messages.
func (r *Reader) served(m *members) int64 {
	return r.label(m.value(kChatTemplate)) + r.label(m.value(kTemplateWords))
}

func (r *Reader) chatMessage(msg jsonwalk.Value) int64 {
	if !msg.IsObject() {
		return perMessage + r.text(msg)
	}
	n := int64(perMessage)
	msg.ForEach(func(key string, v jsonwalk.Value) bool {
		switch key {
		case "role", "tool_call_id":
			n += r.label(v)
		case "content":
			n += r.content(v)
		case "name":
			n += perName + r.text(v)
		case "tool_calls":
			v.ForEach(func(_ string, call jsonwalk.Value) bool {
				n += perToolCall + r.toolCall(call)
				return true
			})
		case "function_call":
			n += perToolCall + r.text(v.Get("name")) + r.text(v.Get("arguments"))
		default:
			n += r.text(v)
		}
		return true
	})
	return n
}

// toolCall counts a call of a function, or of a tool of the caller's own kind.
func (r *Reader) toolCall(call jsonwalk.Value) (n int64) {
	eachOf(call, func(key string, v jsonwalk.Value) {
		switch {
		case key == "id" || key == "type" || key == "index":
			n += r.label(v)
		case v.IsObject():
			n += r.text(v.Get("name")) + r.text(v.Get("arguments")) + r.text(v.Get("input"))
		default:
			n += r.text(v)
		}
	})
	return n
}

// longLabel is how long, in bytes, a value may be that is a word or an identifier for the provider, and not text for the model. A
// model's template may show it all the same.
const longLabel = 128

func (r *Reader) label(v jsonwalk.Value) int64 {
	if len(v) <= longLabel {
		return 0
	}
	return r.text(v)
}

// maxNesting is how deep content is followed into content (a message's, a tool's result in it, a document in that). What
// lies deeper counts as the JSON that it is: each level is read once more, and a hostile body must not be read thousands of times.
const maxNesting = 4

// content counts a message's content in any dialect: a string, or a list of parts.
func (r *Reader) content(v jsonwalk.Value) int64 {
	if !v.IsArray() || r.nesting == maxNesting {
		return r.text(v)
	}
	r.nesting++
	defer func() { r.nesting-- }()
	var n int64
	v.ForEach(func(_ string, part jsonwalk.Value) bool {
		n += r.part(part)
		return true
	})
	return n
}

// part counts one part. Base64 never counts as text, except where it stands in a text, where it is text for the model.
func (r *Reader) part(part jsonwalk.Value) int64 {
	if !part.IsObject() {
		return r.text(part)
	}
	switch part.Get("type").Str() {
	case "text", "input_text", "output_text":
		return r.text(part.Get("text"))
	case "refusal":
		return r.text(part.Get("refusal"))
	case "image_url", "input_image", "image":
		return r.image(part)
	case "input_audio":
		return r.audio(part)
	case "file", "input_file":
		return r.file(part)
	case "document":
		return r.document(part.Get("source"))
	case "tool_use", "server_tool_use":
		return r.text(part.Get("name")) + r.text(part.Get("input"))
	case "tool_result":
		return r.content(part.Get("content"))
	case "thinking":
		return r.text(part.Get("thinking"))
	}
	return r.text(part)
}

func (r *Reader) responses(m *members) int64 {
	n := perRequest + r.text(m.value(kInstructions)) + r.tools(m.value(kTools)) + r.compact(m.value(kText).Get("format"))
	input := m.value(kInput)
	if !input.IsArray() {
		return n + perMessage + r.text(input)
	}
	input.ForEach(func(_ string, item jsonwalk.Value) bool {
		n += perMessage + r.responseItem(item)
		return true
	})
	return n
}

func (r *Reader) responseItem(item jsonwalk.Value) int64 {
	switch item.Get("type").Str() {
	case "function_call", "custom_tool_call":
		return r.text(item.Get("name")) + r.text(item.Get("arguments")) + r.text(item.Get("input"))
	case "function_call_output", "custom_tool_call_output":
		return r.content(item.Get("output"))
	}
	if content := item.Get("content"); content.Exists() {
		return r.content(content) + r.label(item.Get("role"))
	}
	return r.part(item)
}

// completions counts the old completions and gives the number of prompts.
func (r *Reader) completions(m *members) (n, prompts int64) {
	n, prompts = r.prompts(m.value(kPrompt))
	if m.numbers[kMaxTokens] < 0 {
		m.numbers[kMaxTokens] = defaultCompletion
	}
	return n + r.text(m.value(kSuffix)), prompts
}

// prompts counts one of the four forms of a prompt: a string, strings, token ids, lists of token ids.
func (r *Reader) prompts(v jsonwalk.Value) (n, prompts int64) {
	if !v.IsArray() {
		return r.text(v), 1
	}
	ids := int64(0)
	v.ForEach(func(_ string, p jsonwalk.Value) bool {
		switch {
		case p.Type() == jsonwalk.Number:
			ids++
			return true
		case p.IsArray():
			p.ForEach(func(_ string, _ jsonwalk.Value) bool {
				n++
				return true
			})
		default:
			n += r.part(p)
		}
		prompts++
		return true
	})
	if ids > 0 {
		prompts++
	}
	return n + ids, max(prompts, 1)
}
