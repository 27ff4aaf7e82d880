// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

var anthropicSpeech = speech{
	name:        "anthropic",
	path:        "/v1/messages",
	credentials: []string{"x-api-key", "authorization", "api-key", "x-goog-api-key"},
	voice:       anthropicVoice,
	endpoints: joined([]endpoint{
		{suffix: "/messages/count_tokens", api: Requests}, {suffix: "/messages", api: Messages}, {suffix: "/models", api: Requests},
	}, vertexEndpoints, bedrockEndpoints),
	readable: []string{"/models", "/messages/batches", "/files"},
}

// vertexEndpoints are those of Anthropic's models at Google. (The token counter is a model of its own there.)
var vertexEndpoints = []endpoint{
	{suffix: "/count-tokens:rawpredict", api: Requests},
	{suffix: ":rawpredict", api: Messages, marker: "/publishers/anthropic/models/"},
	{suffix: ":streamrawpredict", api: Messages, marker: "/publishers/anthropic/models/", stream: true},
}

var messagesForm = form{
	name: "messages", voice: anthropicVoice, tells: true, rule: cacheBeside,
	text: messagesAreText, count: (*Reader).messages, event: (*Answer).messageEvent,
	declared: func(m *members) int64 { return m.number(kMaxTokens) },
	answer: []want{
		{"usage", "", anthropicUsage}, {"error", "", (*Answer).fail}, {"message", "usage", anthropicUsage},
	},
}

func (a *Answer) messageEvent(e jsonwalk.Value) {
	switch e.Get("type").Str() {
	case "message_start":
		anthropicUsage(a, e.Get("message.usage"))
	case "content_block_delta":
		a.sawAll(e.Get("delta"), 0)
	case "message_delta":
		anthropicUsage(a, e.Get("usage"))
	case "error":
		a.fail(e)
	}
}

// anthropicUsage takes usage in which what was read from and written to the cache is beside the input.
func anthropicUsage(a *Answer, v jsonwalk.Value) {
	u := &a.usage
	eachOf(v, func(key string, v jsonwalk.Value) {
		switch key {
		case "input_tokens":
			counter(&u.Input, v)
		case "output_tokens":
			counter(&u.Output, v)
		case "cache_creation_input_tokens":
			counter(&u.CacheWrite, v)
		case "cache_read_input_tokens":
			counter(&u.CacheRead, v)
		case "output_tokens_details":
			counter(&u.Reasoning, v.Get("thinking_tokens"))
		}
	})
}
