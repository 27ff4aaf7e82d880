// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

var ollamaSpeech = speech{
	name:        "ollama",
	path:        "/api/chat",
	credentials: []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	voice:       ollamaVoice,
	endpoints: joined([]endpoint{
		{suffix: "/api/chat", api: OllamaChat}, {suffix: "/api/generate", api: OllamaGenerate},
		{suffix: "/api/embed", api: OllamaEmbed}, {suffix: "/api/embeddings", api: OllamaEmbed}, {suffix: "/api/show", api: Requests},
		{suffix: "/api/pull", api: Requests}, {suffix: "/api/push", api: Requests}, {suffix: "/api/copy", api: Requests}, {suffix: "/api/create", api: Requests},
	}, openAIEndpoints),
	readable: []string{"/models", "/api/tags", "/api/ps", "/api/version", "/api/delete", "/api/blobs"},
}

// ollamaOutput is what options declare; -1 and -2 there mean that there is no bound.
func ollamaOutput(m *members) int64 { return nested(m.values[kOptions], "num_predict") }

var ollamaChatForm = form{
	name: "ollama_chat", voice: ollamaVoice, streams: true, tells: true, declared: ollamaOutput,
	event: (*Answer).ollamaEvent, answer: ollamaAnswer,
	count: func(r *Reader, m *members) int64 {
		n := perRequest + r.tools(m.value(kTools))
		m.value(kMessages).ForEach(func(_ string, msg jsonwalk.Value) bool {
			n += perMessage + r.text(msg.Get("content")) + r.text(msg.Get("thinking")) + r.pictures(msg.Get("images"))
			msg.Get("tool_calls").ForEach(func(_ string, call jsonwalk.Value) bool {
				n += perMessage + r.text(call.Get("function.name")) + r.text(call.Get("function.arguments"))
				return true
			})
			return true
		})
		return n
	},
}

var ollamaGenerateForm = form{
	name: "ollama_generate", voice: ollamaVoice, streams: true, tells: true, declared: ollamaOutput,
	event: (*Answer).ollamaEvent, answer: ollamaAnswer,
	count: func(r *Reader, m *members) int64 {
		n := perRequest + perMessage + r.text(m.value(kPrompt)) + r.text(m.value(kSystem))
		return n + r.text(m.value(kSuffix)) + r.pictures(m.value(kImages))
	},
}

var ollamaEmbedForm = form{
	name: "ollama_embed", voice: ollamaVoice, answer: ollamaAnswer,
	count: func(r *Reader, m *members) int64 {
		n, _ := r.prompts(m.value(kInput))
		return n + r.text(m.value(kPrompt))
	},
}

// Usage is at the top of the answer, or of the last line of a stream. Of a prompt that was cached its count is missing.
var ollamaAnswer = []want{
	{"prompt_eval_count", "", func(a *Answer, v jsonwalk.Value) { counter(&a.usage.Input, v) }},
	{"eval_count", "", func(a *Answer, v jsonwalk.Value) { counter(&a.usage.Output, v) }},
	{"error", "", (*Answer).fail},
}

func (a *Answer) ollamaEvent(e jsonwalk.Value) {
	eachOf(e, func(key string, v jsonwalk.Value) {
		switch key {
		case "message":
			a.sawAll(v, 0)
		case "response", "thinking":
			a.saw(v)
		}
		for i := range ollamaAnswer {
			if ollamaAnswer[i].key == key {
				ollamaAnswer[i].take(a, v)
			}
		}
	})
}
