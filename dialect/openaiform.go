// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

var openAISpeech = speech{
	name:        "openai",
	path:        "/v1/chat/completions",
	voice:       openAIVoice,
	credentials: []string{"authorization", "api-key", "x-api-key", "x-goog-api-key"},
	endpoints: joined([]endpoint{
		{suffix: "/responses/input_tokens", api: Requests}, {suffix: "/moderations", api: Requests},
		{suffix: "/files", api: Requests}, {suffix: "/models", api: Requests},
	}, openAIEndpoints),
	readable: []string{"/models", "/files", "/batches", "/responses", "/chat/completions"},
}

// openAIEndpoints are those that other providers offer, too.
var openAIEndpoints = []endpoint{
	{suffix: "/chat/completions", api: Chat}, {suffix: "/responses", api: Responses},
	{suffix: "/completions", api: Completions}, {suffix: "/embeddings", api: Embeddings},
}

var chatForm = form{
	name: "chat", voice: openAIVoice, text: messagesAreText, event: (*Answer).chatEvent,
	count: func(r *Reader, m *members) int64 { return r.chat(m) + r.text(m.value(kDocuments)) },
	declared: func(m *members) int64 {
		return times(max(m.number(kMaxTokens), m.number(kMaxCompletionTokens)), max(m.count(kN), m.count(kBestOf)))
	},
	answer: []want{{"usage", "", openAIUsage}, {"error", "", (*Answer).fail}},
}

var responsesForm = form{
	name: "responses", voice: openAIVoice, count: (*Reader).responses, tells: true, event: (*Answer).responseEvent,
	declared: func(m *members) int64 { return m.number(kMaxOutputTokens) },
	text: func(m *members) bool {
		input := m.values[kInput]
		return !strings.HasPrefix(input, "[") || areTexts(input)
	},
	answer: []want{
		{"usage", "", openAIUsage}, {"error", "", (*Answer).fail}, {"response", "usage", openAIUsage},
		{"status", "", func(a *Answer, v jsonwalk.Value) { a.pending = v.Str() == "queued" || v.Str() == "in_progress" }},
	},
}

// completionsForm declares its output when it is counted, for only then the number of prompts is known.
var completionsForm = form{
	name: "completions", voice: openAIVoice, event: (*Answer).chatEvent, answer: chatForm.answer,
	count: func(r *Reader, m *members) int64 {
		n, prompts := r.completions(m)
		r.request.Output = times(m.number(kMaxTokens), max(m.count(kN), m.count(kBestOf))*prompts)
		return n
	},
	declared: func(m *members) int64 { return times(m.number(kMaxTokens), m.count(kN)) },
}

var embeddingsForm = form{
	name: "embeddings", voice: openAIVoice, answer: chatForm.answer,
	count: func(r *Reader, m *members) int64 {
		n, _ := r.prompts(m.value(kInput))
		return n
	},
}

// chatEvent reads a chunk of a chat or of old completions.
func (a *Answer) chatEvent(e jsonwalk.Value) {
	e.ForEach(func(key string, v jsonwalk.Value) bool {
		switch key {
		case "usage":
			openAIUsage(a, v)
		case "choices":
			v.ForEach(func(_ string, choice jsonwalk.Value) bool {
				a.saw(choice.Get("text"))
				a.sawAll(choice.Get("delta"), 0)
				return true
			})
		case "error":
			a.fail(v)
		}
		return true
	})
}

func (a *Answer) responseEvent(e jsonwalk.Value) {
	kind := e.Get("type").Str()
	switch {
	case strings.HasSuffix(kind, ".delta"):
		a.saw(e.Get("delta"))
	case kind == "error" || kind == "response.failed":
		a.fail(e)
	}
	openAIUsage(a, e.Get("response.usage"))
}

// openAIUsage takes usage of chats (prompt and completion) or of responses (input and output). Cached tokens are inside the
// input, reasoning inside the output.
func openAIUsage(a *Answer, v jsonwalk.Value) {
	u := &a.usage
	eachOf(v, func(key string, v jsonwalk.Value) {
		switch key {
		case "prompt_tokens", "input_tokens":
			counter(&u.Input, v)
		case "completion_tokens", "output_tokens":
			counter(&u.Output, v)
		case "cache_read_input_tokens": // Anthropic's, whose answer somebody has translated: beside the input
			counter(&u.CacheRead, v)
			u.rule = cacheBeside
		case "prompt_cache_hit_tokens": // DeepSeek
			counter(&u.CacheRead, v)
		case "prompt_tokens_details", "input_tokens_details":
			counter(&u.CacheRead, v.Get("cached_tokens"))
			counter(&u.Image, v.Get("image_tokens"))
			counter(&u.Audio, v.Get("audio_tokens"))
		case "completion_tokens_details", "output_tokens_details":
			counter(&u.Reasoning, v.Get("reasoning_tokens"))
		}
	})
}
