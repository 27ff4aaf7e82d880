// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

var bedrockSpeech = speech{
	name:        "bedrock",
	path:        "/model/anthropic.claude/converse",
	credentials: []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	voice:       bedrockVoice,
	endpoints:   joined(bedrockEndpoints, openAIEndpoints),
	readable:    []string{"/foundation-models", "/inference-profiles", "/async-invoke"},
}

var bedrockEndpoints = []endpoint{
	{suffix: "/converse", api: Converse, marker: "/model/"},
	{suffix: "/converse-stream", api: Converse, marker: "/model/", stream: true},
	{suffix: "/invoke", api: Invoke, marker: "/model/"},
	{suffix: "/invoke-with-response-stream", api: Invoke, marker: "/model/", stream: true},
	{suffix: "/count-tokens", api: Requests},
}

var converseForm = form{
	name: "converse", voice: bedrockVoice, tells: true, rule: cacheBeside,
	count: (*Reader).converse, event: (*Answer).converseEvent,
	declared: func(m *members) int64 { return nested(m.values[kInferenceConfig], "maxTokens") },
	text: func(m *members) bool {
		return textsUnder(m.values[kMessages], "content") && onlyTexts(m.values[kSystem])
	},
	answer: []want{{"usage", "", bedrockUsage}},
}

func (r *Reader) converse(m *members) int64 {
	n := perRequest + r.blocks(m.value(kSystem)) + r.text(m.value(kPromptVariables)) + r.tools(m.value(kToolConfig).Get("tools"))
	m.value(kMessages).ForEach(func(_ string, msg jsonwalk.Value) bool {
		n += perMessage + r.blocks(msg.Get("content"))
		return true
	})
	return n
}

// blocks counts a list of content blocks, each an object whose only member says what it is.
func (r *Reader) blocks(v jsonwalk.Value) (n int64) {
	if !v.IsArray() || r.nesting == maxNesting {
		return r.text(v)
	}
	r.nesting++
	defer func() { r.nesting-- }()
	v.ForEach(func(_ string, block jsonwalk.Value) bool {
		if !block.IsObject() {
			n += r.text(block)
		}
		eachOf(block, func(kind string, v jsonwalk.Value) { n += r.block(kind, v) })
		return true
	})
	return n
}

func (r *Reader) block(kind string, v jsonwalk.Value) int64 {
	switch kind {
	case "image":
		return r.blob("image/")
	case "document", "video", "audio":
		return r.blob("")
	case "toolUse":
		return perMessage + r.text(v.Get("name")) + r.text(v.Get("input"))
	case "toolResult":
		return r.blocks(v.Get("content"))
	case "reasoningContent":
		return r.text(v.Get("reasoningText.text"))
	case "guardContent":
		return r.text(v.Get("text.text"))
	case "cachePoint":
		return 0
	}
	return r.text(v)
}

// converseEvent reads the payload of a frame, which shows by its members what it is.
func (a *Answer) converseEvent(e jsonwalk.Value) {
	eachOf(e, func(key string, v jsonwalk.Value) {
		switch key {
		case "delta":
			a.sawAll(v, 0)
		case "usage":
			bedrockUsage(a, v)
		}
	})
}

// bedrockUsage takes usage in which the cache is beside the input, as at Anthropic.
func bedrockUsage(a *Answer, v jsonwalk.Value) {
	u := &a.usage
	eachOf(v, func(key string, v jsonwalk.Value) {
		switch key {
		case "inputTokens":
			counter(&u.Input, v)
		case "outputTokens":
			counter(&u.Output, v)
		case "cacheReadInputTokens":
			counter(&u.CacheRead, v)
		case "cacheWriteInputTokens":
			counter(&u.CacheWrite, v)
		}
	})
}
