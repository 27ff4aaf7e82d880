// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

var geminiSpeech = speech{
	name:        "gemini",
	path:        "/v1beta/models/gemini-2.5-flash:generateContent",
	credentials: []string{"x-goog-api-key", "authorization", "x-api-key", "api-key"},
	queryKey:    "key",
	voice:       geminiVoice,
	endpoints: joined([]endpoint{
		{suffix: ":generatecontent", api: Generate, marker: "/"},
		{suffix: ":streamgeneratecontent", api: Generate, marker: "/", stream: true},
		{suffix: ":embedcontent", api: EmbedContent, marker: "/"},
		{suffix: ":batchembedcontents", api: EmbedContent, marker: "/"},
		{suffix: ":counttokens", api: Requests}, {suffix: ":computetokens", api: Requests}, {suffix: "/files", api: Requests},
	}, openAIEndpoints, vertexEndpoints),
	readable: []string{"/models", "/files", "/cachedcontents", "/operations", "/batches"},
}

var generateForm = form{
	name: "generate", voice: geminiVoice, tells: true, rule: reasoningBeside,
	count: (*Reader).generate, event: (*Answer).generateEvent,
	declared: func(m *members) int64 {
		c := m.values[kGenerationConfig]
		return times(nested(c, "maxOutputTokens", "max_output_tokens"), bounded(nested(c, "candidateCount", "candidate_count")))
	},
	text: func(m *members) bool {
		return textsUnder(m.values[kContents], "parts") && textUnder(m.values[kSystemInstruction], "parts")
	},
	answer: []want{{"usageMetadata", "", geminiUsage}, {"usage_metadata", "", geminiUsage}, {"error", "", (*Answer).fail}},
}

var embedContentForm = form{
	name: "embed_content", voice: geminiVoice, answer: generateForm.answer,
	count: func(r *Reader, m *members) int64 {
		n := r.geminiContent(m.value(kContent))
		m.value(kRequests).ForEach(func(_ string, q jsonwalk.Value) bool {
			n += r.geminiContent(q.Get("content"))
			return true
		})
		return n
	},
}

func (r *Reader) generate(m *members) int64 {
	n := perRequest + r.geminiContent(m.value(kSystemInstruction)) + r.tools(m.value(kTools))
	contents := m.value(kContents)
	if !contents.IsArray() {
		return n + perMessage + r.geminiContent(contents)
	}
	contents.ForEach(func(_ string, c jsonwalk.Value) bool {
		n += perMessage + r.geminiContent(c)
		return true
	})
	return n
}

// geminiContent counts a list of parts with a role around it.
func (r *Reader) geminiContent(c jsonwalk.Value) (n int64) {
	if !c.IsObject() {
		return r.text(c)
	}
	parts := c.Get("parts")
	if !parts.IsArray() {
		return r.text(parts)
	}
	parts.ForEach(func(_ string, part jsonwalk.Value) bool {
		n += r.geminiPart(part)
		return true
	})
	return n
}

func (r *Reader) geminiPart(part jsonwalk.Value) (n int64) {
	if !part.IsObject() {
		return r.text(part)
	}
	part.ForEach(func(key string, v jsonwalk.Value) bool {
		switch key {
		case "inlineData", "inline_data", "fileData", "file_data":
			n += r.blob(v.Get("mimeType").Str() + v.Get("mime_type").Str())
		case "functionCall", "function_call", "functionResponse", "function_response":
			n += perMessage + r.text(v.Get("name")) + r.text(v.Get("args")) + r.text(v.Get("response"))
		case "executableCode", "executable_code", "codeExecutionResult", "code_execution_result":
			n += r.text(v.Get("code")) + r.text(v.Get("output"))
		case "thought", "thoughtSignature", "thought_signature":
		default:
			n += r.text(v)
		}
		return true
	})
	return n
}

// blob counts something that is no text by its kind.
func (r *Reader) blob(mime string) int64 {
	r.request.References = true
	if strings.HasPrefix(mime, "image/") {
		return perImage
	}
	return perAudioOrFile
}

// generateEvent reads a chunk of an answer. (What a stream repeats in each chunk are totals.)
func (a *Answer) generateEvent(e jsonwalk.Value) {
	eachOf(e, func(key string, v jsonwalk.Value) {
		switch key {
		case "usageMetadata", "usage_metadata":
			geminiUsage(a, v)
		case "error":
			a.fail(v)
		case "candidates":
			v.ForEach(func(_ string, c jsonwalk.Value) bool {
				c.Get("content.parts").ForEach(func(_ string, part jsonwalk.Value) bool {
					a.saw(part.Get("text"))
					a.sawAll(part.Get("functionCall.args"), 0)
					a.saw(part.Get("executableCode.code"))
					return true
				})
				return true
			})
		}
	})
}

// geminiUsage takes usage in which cached tokens are inside the prompt, and thoughts and what tools read are beside.
func geminiUsage(a *Answer, v jsonwalk.Value) {
	u := &a.usage
	eachOf(v, func(key string, v jsonwalk.Value) {
		switch key {
		case "promptTokenCount", "prompt_token_count":
			counter(&u.Input, v)
		case "candidatesTokenCount", "candidates_token_count":
			counter(&u.Output, v)
		case "thoughtsTokenCount", "thoughts_token_count":
			counter(&u.Reasoning, v)
		case "cachedContentTokenCount", "cached_content_token_count":
			counter(&u.CacheRead, v)
		case "toolUsePromptTokenCount", "tool_use_prompt_token_count":
			counter(&u.Tools, v)
		case "promptTokensDetails", "prompt_tokens_details":
			v.ForEach(func(_ string, d jsonwalk.Value) bool {
				n := d.Get("tokenCount")
				switch d.Get("modality").Str() {
				case "IMAGE":
					counter(&u.Image, n)
				case "AUDIO":
					counter(&u.Audio, n)
				}
				return true
			})
		}
	})
}
