// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

var cohereSpeech = speech{
	name:        "cohere",
	path:        "/v2/chat",
	credentials: []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	voice:       cohereVoice,
	endpoints: joined([]endpoint{
		{suffix: "/chat", api: CohereChat}, {suffix: "/embed", api: CohereEmbed}, {suffix: "/rerank", api: Rerank},
		{suffix: "/tokenize", api: Requests}, {suffix: "/detokenize", api: Requests}, {suffix: "/check-api-key", api: Requests},
	}, openAIEndpoints),
	readable: []string{"/models", "/datasets", "/embed-jobs"},
}

// cohereChatForm is of both versions: the second has messages, the first a message and those before it.
var cohereChatForm = form{
	name: "cohere_chat", voice: cohereVoice, tells: true, event: (*Answer).cohereEvent,
	count: func(r *Reader, m *members) int64 {
		n := r.chat(m) + r.text(m.value(kMessage)) + r.text(m.value(kPreamble)) + r.text(m.value(kDocuments))
		m.value(kChatHistory).ForEach(func(_ string, msg jsonwalk.Value) bool {
			n += perMessage + r.text(msg.Get("message"))
			return true
		})
		return n
	},
	declared: func(m *members) int64 { return m.number(kMaxTokens) },
	text:     func(m *members) bool { return messagesAreText(m) && !m.has(kChatHistory) },
	answer:   cohereAnswer,
}

var cohereEmbedForm = form{
	name: "cohere_embed", voice: cohereVoice, answer: cohereAnswer,
	count: func(r *Reader, m *members) int64 {
		n, _ := r.prompts(m.value(kTexts))
		m.value(kInputs).ForEach(func(_ string, input jsonwalk.Value) bool {
			n += r.content(input.Get("content"))
			return true
		})
		return n + r.pictures(m.value(kImages))
	},
}

var rerankForm = form{
	name: "rerank", voice: cohereVoice, answer: cohereAnswer,
	count: func(r *Reader, m *members) int64 {
		n, _ := r.prompts(m.value(kDocuments))
		return n + r.text(m.value(kQuery))
	},
}

// pictures counts a list of images in base64.
func (r *Reader) pictures(v jsonwalk.Value) (n int64) {
	v.ForEach(func(_ string, _ jsonwalk.Value) bool {
		n += r.blob("image/")
		return true
	})
	return n
}

// Usage is in an answer, in the last event of a stream, and, in the first version, in that of the answer as meta.
var cohereAnswer = []want{
	{"usage", "", cohereUsage}, {"meta", "", cohereUsage}, {"delta", "usage", cohereUsage}, {"response", "meta", cohereUsage},
}

func (a *Answer) cohereEvent(e jsonwalk.Value) {
	delta := e.Get("delta")
	switch kind := e.Get("type").Str(); {
	case strings.HasSuffix(kind, "-delta"):
		a.sawAll(delta, 0)
	case kind == "message-end":
		cohereUsage(a, delta.Get("usage"))
		a.fail(delta.Get("error"))
	}
	switch e.Get("event_type").Str() {
	case "text-generation":
		a.saw(e.Get("text"))
	case "stream-end":
		cohereUsage(a, e.Get("response.meta"))
	}
}

// cohereUsage takes the tokens that were processed, or else those that are billed: limits are for the first.
func cohereUsage(a *Answer, v jsonwalk.Value) {
	u := &a.usage
	for _, kind := range []string{"billed_units", "tokens"} {
		t := v.Get(kind)
		counter(&u.Input, t.Get("input_tokens"))
		counter(&u.Output, t.Get("output_tokens"))
	}
	counter(&u.CacheRead, v.Get("cached_tokens"))
}
