// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/base64"
	"strconv"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// invokeForm is Bedrock's InvokeModel: bodies as the model's maker has them. Anthropic's are read as messages; of others the
// texts that are common count. All answers that are no streams say their usage in headers.
var invokeForm = form{
	name: "invoke", voice: bedrockVoice, tells: true, rule: cacheBeside, event: (*Answer).invokeEvent,
	count: func(r *Reader, m *members) int64 {
		n := r.text(m.value(kPrompt)) + r.text(m.value(kInputText)) + r.text(m.value(kTexts))
		if m.has(kMessages) {
			n += r.messages(m)
		}
		return n
	},
	declared: func(m *members) int64 {
		n := max(m.number(kMaxTokens), m.number(kMaxTokensToSample), m.number(kMaxGenLen))
		return max(n, nested(m.values[kTextGenerationConfig], "maxTokenCount"), nested(m.values[kInferenceConfig], "maxTokens", "max_new_tokens"))
	},
	answer: []want{{"usage", "", invokeUsage}, {"amazon-bedrock-invocationMetrics", "", metricsUsage}},
}

// invokeEvent reads a frame, which has an event of the maker's in base64.
func (a *Answer) invokeEvent(e jsonwalk.Value) {
	data, err := base64.StdEncoding.DecodeString(e.Get("bytes").Str())
	if err != nil {
		return
	}
	if e = parse(data); !e.IsObject() {
		return
	}
	a.messageEvent(e)
	a.saw(e.Get("generation"))
	a.saw(e.Get("outputText"))
	metricsUsage(a, e.Get("amazon-bedrock-invocationMetrics"))
}

// invokeUsage takes usage as Anthropic has it, or as Bedrock does (Nova).
func invokeUsage(a *Answer, v jsonwalk.Value) {
	anthropicUsage(a, v)
	bedrockUsage(a, v)
}

// metricsUsage takes Bedrock's own figures, where the model's maker says none.
func metricsUsage(a *Answer, v jsonwalk.Value) {
	if !a.usage.Said() {
		counter(&a.usage.Input, v.Get("inputTokenCount"))
		counter(&a.usage.Output, v.Get("outputTokenCount"))
	}
}

// Header takes a header of the answer that may say usage.
func (a *Answer) Header(name, value string) {
	var to *int64
	switch name {
	case "x-amzn-bedrock-input-token-count":
		to = &a.usage.Input
	case "x-amzn-bedrock-output-token-count":
		to = &a.usage.Output
	default:
		return
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 && n <= maxDeclared && a.Reads() {
		*to = n
	}
}
