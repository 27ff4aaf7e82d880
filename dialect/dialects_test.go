// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/policy"
)

// What method and path say, in each dialect. The paths of cases path-01 to path-03 are among them.
func TestCallOf(t *testing.T) {
	for _, row := range []struct {
		dialect Dialect
		path    string
		want    Call
	}{
		{OpenAI, "/v1/chat/completions", Call{API: Chat}},
		{OpenAI, "//v1/chat/completions", Call{API: Chat}},
		{OpenAI, "/v1/chat/completions?x=1", Call{API: Chat}},
		{OpenAI, "/V1/Chat/Completions/", Call{API: Chat}},
		{OpenAI, "/proj/abc/v1/chat%2Fcompletions", Call{API: Chat}},
		{OpenAI, "/openai/deployments/Prod-4o/chat/completions?api-version=2024-10-21", Call{API: Chat, Model: "Prod-4o"}},
		{OpenAI, "/openai/deployments/emb/embeddings?api-version=2024-10-21", Call{API: Embeddings, Model: "emb"}},
		{OpenAI, "/openai/v1/responses", Call{API: Responses}},
		{OpenAI, "/v1/completions", Call{API: Completions}},
		{OpenAI, "/v1/responses/input_tokens", Call{API: Requests}},
		{OpenAI, "/v1/images/generations", Call{}},
		{Anthropic, "/v1/messages?beta=true", Call{API: Messages}},
		{Anthropic, "/v1/messages/count_tokens", Call{API: Requests}},
		{Anthropic, "/v1/projects/p/locations/eu/publishers/anthropic/models/claude-x@20250101:streamRawPredict", Call{Messages, "claude-x@20250101", true}},
		{Anthropic, "/v1/projects/p/locations/eu/publishers/anthropic/models/count-tokens:rawPredict", Call{API: Requests}},
		{Anthropic, "/v1/projects/p/locations/eu/publishers/meta/models/llama:rawPredict", Call{}},
		{Anthropic, "/model/anthropic.claude-x-v1%3A0/invoke", Call{Invoke, "anthropic.claude-x-v1:0", false}},
		{Anthropic, "/v1/messages/batches", Call{}},
		{Gemini, "/v1beta/models/gemini-x:generateContent", Call{Generate, "gemini-x", false}},
		{Gemini, "/v1beta/models/gemini-x%3AgenerateContent", Call{Generate, "gemini-x", false}},
		{Gemini, "/v1beta/models/Gemini-X:streamGenerateContent?alt=sse&key=k", Call{Generate, "Gemini-X", true}},
		{Gemini, "/v1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", Call{Generate, "gemini-x", false}},
		{Gemini, "/v1beta/tunedModels/mine:generateContent", Call{Generate, "mine", false}},
		{Gemini, "/v1beta/models/gemini-x:countTokens", Call{API: Requests}},
		{Gemini, "/v1beta/models/e:batchEmbedContents", Call{EmbedContent, "e", false}},
		{Gemini, "/v1beta/models/e:embedContent", Call{EmbedContent, "e", false}},
		{Gemini, "/v1beta/openai/chat/completions", Call{API: Chat}},
		{Gemini, "/v1beta/models/gemini-x:batchGenerateContent", Call{}},
		{Gemini, "/v1/publishers/anthropic/models/claude-x:rawPredict", Call{Messages, "claude-x", false}},
		{Bedrock, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A000000000000%3Ainference-profile%2Fus.anthropic.claude-x-v1%3A0/converse", Call{Converse, "us.anthropic.claude-x-v1:0", false}},
		{Bedrock, "/model/a%252Fb/converse", Call{Converse, "a%2Fb", false}},
		{Bedrock, "/model/amazon.nova-lite-v1:0/converse-stream", Call{Converse, "amazon.nova-lite-v1:0", true}},
		{Bedrock, "/model/m/invoke-with-response-stream", Call{Invoke, "m", true}},
		{Bedrock, "/model/m/count-tokens", Call{API: Requests}},
		{Bedrock, "/model//converse", Call{}},
		{Bedrock, "/converse", Call{}},
		{Cohere, "/v2/chat", Call{API: CohereChat}},
		{Cohere, "/v1/embed", Call{API: CohereEmbed}},
		{Cohere, "/v2/rerank", Call{API: Rerank}},
		{Cohere, "/v1/tokenize", Call{API: Requests}},
		{Cohere, "/compatibility/v1/chat/completions", Call{API: Chat}},
		{Mistral, "/v1/chat/completions", Call{API: Chat}},
		{Mistral, "/v1/fim/completions", Call{API: FIM}},
		{Mistral, "/v1/agents/completions", Call{API: Chat}},
		{Mistral, "/v1/ocr", Call{}},
		{Ollama, "/api/chat", Call{API: OllamaChat}},
		{Ollama, "/api/generate", Call{API: OllamaGenerate}},
		{Ollama, "/api/embed", Call{API: OllamaEmbed}},
		{Ollama, "/v1/chat/completions", Call{API: Chat}},
		{Ollama, "/api/show", Call{API: Requests}},
		{Generic, "/anything", Call{API: Requests}},
	} {
		if got := row.dialect.CallOf("POST", row.path); got != row.want {
			t.Errorf("%v %s: %+v, want %+v", row.dialect, row.path, got, row.want)
		}
	}
	for path, want := range map[string]API{"/v1beta/models": Requests, "/v1beta/models/x": Requests, "/v1beta/models/x:generateContent": Unrecognised, "/api/tags": Unrecognised} {
		if got := Gemini.APIOf("GET", path); got != want {
			t.Errorf("GET %s: %v", path, got)
		}
	}
}

// What requests of each dialect cost, by hand from the vocabulary: hello and world are a token each.
func TestReadDialects(t *testing.T) {
	png := strings.Repeat("A", 400_000)
	for _, row := range []struct {
		api           API
		body          string
		input, output int64
	}{
		{Generate, `{"contents":[{"role":"user","parts":[{"text":"hello"},{"text":" world"}]}],"generationConfig":{"maxOutputTokens":70,"candidateCount":3}}`, 3 + 4 + 2, 210},
		{Generate, `{"system_instruction":{"parts":[{"text":"hello"}]},"contents":[{"parts":[{"text":"world"}]}],"generation_config":{"max_output_tokens":7}}`, 3 + 1 + 4 + 1, 7},
		{Generate, `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}},{"text":"hello"}]}]}`, 3 + 4 + perImage + 1, -1},
		{Generate, `{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"gs://x"}}]}]}`, 3 + 4 + perAudioOrFile, -1},
		{Generate, `{"contents":[{"parts":[{"functionCall":{"name":"hello","args":"world"}}]}]}`, 3 + 4 + 4 + 2, -1},
		{EmbedContent, `{"content":{"parts":[{"text":"hello world"}]}}`, 2, 0},
		{EmbedContent, `{"requests":[{"model":"models/e","content":{"parts":[{"text":"hello"}]}},{"content":{"parts":[{"text":"world"}]}}]}`, 2, 0},
		{Converse, `{"system":[{"text":"hello"}],"messages":[{"role":"user","content":[{"text":"world"}]}],"inferenceConfig":{"maxTokens":500}}`, 3 + 1 + 4 + 1, 500},
		{Converse, `{"messages":[{"content":[{"image":{"format":"png","source":{"bytes":"` + png + `"}}},{"toolResult":{"content":[{"text":"hello"}]}},{"cachePoint":{"type":"default"}}]}]}`, 3 + 4 + perImage + 1, -1},
		{Converse, `{"messages":[{"content":[{"toolUse":{"toolUseId":"t","name":"hello","input":"world"}}]}]}`, 3 + 4 + 4 + 2, -1},
		{Invoke, `{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`, 3 + 4 + 1, 9},
		{Invoke, `{"prompt":"hello world","max_gen_len":77}`, 2, 77},
		{Invoke, `{"inputText":"hello","textGenerationConfig":{"maxTokenCount":88}}`, 1, 88},
		{CohereChat, `{"model":"command","messages":[{"role":"user","content":"hello world"}],"max_tokens":6}`, 3 + 4 + 2, 6},
		{CohereChat, `{"message":"hello","chat_history":[{"role":"USER","message":"world"}]}`, 3 + 1 + 4 + 1, -1},
		{CohereEmbed, `{"texts":["hello","world"]}`, 2, 0},
		{CohereEmbed, `{"inputs":[{"content":[{"type":"text","text":"hello"}]}],"images":["data:image/png;base64,` + png + `"]}`, 1 + perImage, 0},
		{Rerank, `{"query":"hello","documents":["world","world"]}`, 3, 0},
		{FIM, `{"prompt":"hello","suffix":"world","max_tokens":5}`, 3 + 2, 5},
		{OllamaChat, `{"model":"llama","messages":[{"role":"user","content":"hello","images":["` + png + `"]}],"options":{"num_predict":50}}`, 3 + 4 + 1 + perImage, 50},
		{OllamaGenerate, `{"prompt":"hello","system":"world","options":{"num_predict":-1}}`, 3 + 4 + 2, -1},
		{OllamaGenerate, `{"prompt":"hello","options":{"num_predict":-2,"num_ctx":4096}}`, 3 + 4 + 1, -1},
		{OllamaEmbed, `{"input":["hello","world"]}`, 2, 0},
		{Chat, `{"messages":[],"max_tokens":10,"best_of":4,"use_beam_search":true}`, 3, 40},
	} {
		q := read(row.api, row.body)
		if q.Input != row.input || q.Output != row.output {
			t.Errorf("%v %.80s: input %d, output %d; want %d, %d", row.api, row.body, q.Input, q.Output, row.input, row.output)
		}
	}
	if q := read(Chat, `{"min_tokens":5000,"n":2}`); q.Least != 10_000 || q.Output != -1 {
		t.Errorf("vLLM's min_tokens: %+v", q)
	}
	if !read(OllamaChat, `{}`).Stream || read(OllamaChat, `{"stream":false}`).Stream {
		t.Error("Ollama streams unless it is told not to")
	}
	if !read(Generate, `{"cachedContent":"cachedContents/x"}`).References {
		t.Error("cached content is in no body")
	}
}

// frame makes a frame of AWS's event stream.
func frame(kind, payload string) string {
	header := func(name, value string) string {
		return string(rune(len(name))) + name + "\x07\x00" + string(rune(len(value))) + value
	}
	h := header(":event-type", "x") + header(":message-type", kind)
	be := func(n int) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }
	return be(len(h)+len(payload)+16) + be(len(h)) + "????" + h + payload + "????"
}

func wrapped(event string) string {
	return frame("event", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(event))+`","p":"abc"}`)
}

func unbase64(t testing.TB, s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An answerRow is an answer and what it says.
type answerRow struct {
	name                      string
	api                       API
	contentType, body         string
	input, output, reasoning  int64 // that count
	cached, uncounted, images int64
	failed                    bool
}

func answerRows(t testing.TB) []answerRow {
	const sse, js, nd, aws = "text/event-stream", "application/json", "application/x-ndjson", "application/vnd.amazon.eventstream"
	return []answerRow{
		{name: "chat", api: Chat, contentType: js, body: `{"choices":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4,"image_tokens":3},"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2}}}`, input: 10, output: 5, cached: 4, images: 3, reasoning: 2},
		{name: "use-27", api: Chat, contentType: js, body: `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":1015,"cache_read_input_tokens":1000}}`, input: 10, output: 5, uncounted: 1000},
		{name: "use-08", api: Chat, contentType: sse, body: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"}}],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":1}}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n", input: 16, output: 2},
		{name: "use-11", api: Chat, contentType: sse, body: "data: {\"choices\":[],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\n", input: 100, output: 7},
		{name: "use-12", api: Chat, contentType: sse, body: "data: {\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":3}}\n\ndata: {\"usage\":{\"prompt_tokens\":null,\"completion_tokens\":null}}\n\n", input: 10, output: 3},
		{name: "sse-02", api: Chat, contentType: sse, body: "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\r\n\r\ndata:[DONE]\r\n\r\n", input: 3, output: 1},
		{name: "sse-10", api: Chat, contentType: sse, body: "event: x\nid: 7\nretry: 100\ndata: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":2,\ndata: \"completion_tokens\":1}}\n\n", input: 2, output: 1},
		{name: "sse-12", api: Chat, contentType: js, body: `{"usage":{"prompt_tokens":2,"completion_tokens":1}}`, input: 2, output: 1},
		{name: "JSON that is called a stream", api: Chat, contentType: sse, body: `{"usage":{"prompt_tokens":2,"completion_tokens":1}}`, input: 2, output: 1},
		{name: "a stream that is called JSON", api: Chat, contentType: js, body: "data: {\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}\n\n", input: 2, output: 1},
		{name: "no last blank line", api: Chat, contentType: sse, body: "\ufeff: hi\ndata: {\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}", input: 2, output: 1},
		{name: "cut in a number", api: Chat, contentType: sse, body: "data: {\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1", input: -1, output: -1},
		{name: "sseerr-01", api: Chat, contentType: sse, body: "data: {\"error\":{\"message\":\"rate limited\",\"code\":\"rate_limit_exceeded\"}}\n\n", input: -1, output: -1, failed: true},
		{name: "sseerr-05", api: Responses, contentType: sse, body: "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"code\":\"rate_limit_exceeded\"}\n\n", input: -1, output: -1, failed: true},
		{name: "sseerr-04", api: Responses, contentType: sse, body: "data: {\"type\":\"response.created\",\"response\":{\"error\":null}}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"},\"usage\":null}}\n\n", input: -1, output: -1, failed: true},
		{name: "responses", api: Responses, contentType: js, body: `{"output":[{"usage":7}],"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":8},"output_tokens":64,"output_tokens_details":{"reasoning_tokens":60}}}`, input: 20, output: 64, cached: 8, reasoning: 60},
		{name: "use-02", api: Messages, contentType: sse, body: "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1,\"cache_creation_input_tokens\":0,\"output_tokens\":0}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":9,\"cache_read_input_tokens\":1,\"cache_creation_input_tokens\":0,\"output_tokens\":16}}\n\n", input: 9, output: 16, uncounted: 1},
		{name: "use-03", api: Messages, contentType: sse, body: "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":0,\"output_tokens\":0}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":4522,\"cache_creation_input_tokens\":4511,\"output_tokens\":5}}\n\n", input: 9033, output: 5},
		{name: "tpm-21", api: Messages, contentType: js, body: `{"type":"message","usage":{"input_tokens":12,"cache_read_input_tokens":5484,"cache_creation_input_tokens":0,"output_tokens":20}}`, input: 12, output: 20, uncounted: 5484},
		{name: "overloaded", api: Messages, contentType: sse, body: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", input: -1, output: -1, failed: true},
		{name: "use-05", api: Generate, contentType: sse, body: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}],\"usageMetadata\":{\"promptTokenCount\":5000,\"totalTokenCount\":5000}}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"c\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5000,\"candidatesTokenCount\":9,\"thoughtsTokenCount\":4,\"totalTokenCount\":5013}}\n\n", input: 5000, output: 13, reasoning: 4},
		{name: "gemini array", api: Generate, contentType: js, body: "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a]}\\\"\"}]}}],\"usageMetadata\":{\"promptTokenCount\":50}}\n,\r\n{\"usageMetadata\":{\"promptTokenCount\":50,\"cachedContentTokenCount\":30,\"toolUsePromptTokenCount\":5,\"candidatesTokenCount\":9,\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":40},{\"modality\":\"IMAGE\",\"tokenCount\":10}]}}\n]", input: 55, output: 9, cached: 30, images: 10},
		{name: "gemini JSON", api: Generate, contentType: js + "; charset=UTF-8", body: `{"candidates":[],"usage_metadata":{"prompt_token_count":5,"candidates_token_count":2,"thoughts_token_count":1}}`, input: 5, output: 3, reasoning: 1},
		{name: "p429-11", api: Generate, contentType: js, body: `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`, input: -1, output: -1, failed: true},
		{name: "use-13", api: Converse, contentType: aws, body: unbase64(t, "AAAAdgAAAFKW1freCzpldmVudC10eXBlBwAMbWVzc2FnZVN0YXJ0DTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsicm9sZSI6ImFzc2lzdGFudCJ9b6jFmQAAAJQAAABXtKua7gs6ZXZlbnQtdHlwZQcAEWNvbnRlbnRCbG9ja0RlbHRhDTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsiY29udGVudEJsb2NrSW5kZXgiOjAsImRlbHRhIjp7InRleHQiOiJoaSJ9fd5VaVM=") +
			unbase64(t, "AAAAegAAAFHKLEZlCzpldmVudC10eXBlBwALbWVzc2FnZVN0b3ANOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJzdG9wUmVhc29uIjoiZW5kX3R1cm4ifV+/CfwAAADpAAAATtGCFlALOmV2ZW50LXR5cGUHAAhtZXRhZGF0YQ06Y29udGVudC10eXBlBwAQYXBwbGljYXRpb24vanNvbg06bWVzc2FnZS10eXBlBwAFZXZlbnR7InVzYWdlIjp7ImlucHV0VG9rZW5zIjoxMSwib3V0cHV0VG9rZW5zIjoyLCJ0b3RhbFRva2VucyI6MTMsImNhY2hlUmVhZElucHV0VG9rZW5zIjo0LCJjYWNoZVdyaXRlSW5wdXRUb2tlbnMiOjB9LCJtZXRyaWNzIjp7ImxhdGVuY3lNcyI6MX19mLA0fw==") +
			unbase64(t, "AAAAeQAAAE4AhDFACzpldmVudC10eXBlBwAIbWV0YWRhdGENOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJtZXRyaWNzIjp7ImxhdGVuY3lNcyI6OX19ExCJ3g=="), input: 11, output: 2, uncounted: 4},
		{name: "p429-13", api: Converse, contentType: aws, body: unbase64(t, "AAAAdgAAAFKW1freCzpldmVudC10eXBlBwAMbWVzc2FnZVN0YXJ0DTpjb250ZW50LXR5cGUHABBhcHBsaWNhdGlvbi9qc29uDTptZXNzYWdlLXR5cGUHAAVldmVudHsicm9sZSI6ImFzc2lzdGFudCJ9b6jFmQ==") +
			unbase64(t, "AAAAgwAAAGGp0UTlDzpleGNlcHRpb24tdHlwZQcAE3Rocm90dGxpbmdFeGNlcHRpb24NOmNvbnRlbnQtdHlwZQcAEGFwcGxpY2F0aW9uL2pzb24NOm1lc3NhZ2UtdHlwZQcACWV4Y2VwdGlvbnsibWVzc2FnZSI6InNsb3cifZNQMRw="), input: -1, output: -1, failed: true},
		{name: "dos-05", api: Converse, contentType: aws, body: unbase64(t, "////8AAAAAB9r2gu"), input: -1, output: -1},
		{name: "converse JSON", api: Converse, contentType: js, body: `{"output":{},"usage":{"inputTokens":30,"outputTokens":6,"totalTokens":36,"cacheWriteInputTokens":10,"cacheReadInputTokens":100}}`, input: 40, output: 6, uncounted: 100},
		{name: "invoke stream", api: Invoke, contentType: aws, body: wrapped(`{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}`) + wrapped(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"hello"}}`) +
			wrapped(`{"type":"message_delta","usage":{"output_tokens":15}}`) + wrapped(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":25,"outputTokenCount":15}}`), input: 25, output: 15},
		{name: "another maker's stream", api: Invoke, contentType: aws, body: wrapped(`{"generation":"hello"}`) + wrapped(`{"generation":"","amazon-bedrock-invocationMetrics":{"inputTokenCount":5,"outputTokenCount":1}}`), input: 5, output: 1},
		{name: "invoke JSON", api: Invoke, contentType: js, body: `{"type":"message","usage":{"input_tokens":7,"output_tokens":9}}`, input: 7, output: 9},
		{name: "cohere v2", api: CohereChat, contentType: js, body: `{"message":{},"usage":{"billed_units":{"input_tokens":5.0,"output_tokens":418.0},"tokens":{"input_tokens":71.0,"output_tokens":418.0},"cached_tokens":64.0}}`, input: 71, output: 418, cached: 64},
		{name: "cohere v2 stream", api: CohereChat, contentType: sse, body: "event: content-delta\ndata: {\"type\":\"content-delta\",\"delta\":{\"message\":{\"content\":{\"text\":\"hello\"}}}}\n\nevent: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"COMPLETE\",\"usage\":{\"billed_units\":{\"input_tokens\":5,\"output_tokens\":1}}}}\n\n", input: 5, output: 1},
		{name: "cohere v1 stream", api: CohereChat, contentType: "application/stream+json", body: "{\"event_type\":\"text-generation\",\"text\":\"hello\"}\n{\"event_type\":\"stream-end\",\"response\":{\"meta\":{\"tokens\":{\"input_tokens\":9,\"output_tokens\":2}}}}\n", input: 9, output: 2},
		{name: "cohere embed", api: CohereEmbed, contentType: js, body: `{"embeddings":{"float":[[1,2]]},"meta":{"billed_units":{"input_tokens":3}}}`, input: 3, output: -1},
		{name: "use-21", api: OllamaChat, contentType: nd, body: "{\"model\":\"llama\",\"message\":{\"role\":\"assistant\",\"content\":\"he\"},\"done\":false}\n{\"model\":\"llama\",\"message\":{\"content\":\"llo\"},\"done\":false}\n{\"model\":\"llama\",\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":2}\n", input: 26, output: 2},
		{name: "ollama JSON, cached prompt", api: OllamaGenerate, contentType: js, body: `{"model":"llama","response":"hello","done":true,"eval_count":2,"context":[1,2]}`, input: -1, output: 2},
		{name: "ollama error", api: OllamaChat, contentType: nd, body: "{\"error\":\"model not found\"}\n", input: -1, output: -1, failed: true},
	}
}

func check(row *answerRow, a *Answer) error {
	u := a.Usage()
	if whole := row.input + row.uncounted - max(u.Tools, 0); u.Whole() != whole { // what the request holds, cached or not
		return fmt.Errorf("%s: %d tokens of input in all, want %d", row.name, u.Whole(), whole)
	}
	c := u.Counts(max(u.Charged(), 0), max(u.Produced(), 0))
	if u.Charged() != row.input || u.Produced() != row.output || a.Failed() != row.failed {
		return fmt.Errorf("%s: input %d, output %d, failed %v, want %d, %d, %v", row.name, u.Charged(), u.Produced(), a.Failed(), row.input, row.output, row.failed)
	}
	if want := (policy.TokenCounts{Input: c.Input, Output: c.Output, Cached: row.cached, Image: row.images, Reasoning: row.reasoning, Uncounted: row.uncounted}); c != want {
		return fmt.Errorf("%s: %+v, want %+v", row.name, c, want)
	}
	return nil
}

// What answers of each dialect say, cut at each place in two, and into single bytes.
func TestAnswers(t *testing.T) {
	for _, row := range answerRows(t) {
		body := []byte(row.body)
		whole := answerIn(row.api, row.contentType, body, func(left int) int { return left })
		if err := check(&row, &whole); err != nil {
			t.Error(err)
		}
		for cut := range len(body) {
			two := answerIn(row.api, row.contentType, body, func(left int) int {
				if left == len(body) {
					return max(cut, 1)
				}
				return left
			})
			if !sameAnswer(&whole, &two) {
				t.Fatalf("%s: cut at %d: %+v, in one piece %+v", row.name, cut, two.Usage(), whole.Usage())
			}
		}
		single := answerIn(row.api, row.contentType, body, func(int) int { return 1 })
		if !sameAnswer(&whole, &single) {
			t.Errorf("%s: byte by byte %+v, in one piece %+v", row.name, single.Usage(), whole.Usage())
		}
	}
}

// The texts of a stream that is cut off count, and labels and base64 do not.
func TestOutputOfCutStreams(t *testing.T) {
	for name, row := range map[string]struct {
		api               API
		contentType, body string
	}{
		"gemini":  {Generate, "application/json", `[{"candidates":[{"content":{"role":"model","parts":[{"text":"hello world"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}],"modelVersion":"gemini"}`},
		"bedrock": {Converse, "application/vnd.amazon.eventstream", frame("event", `{"role":"assistant"}`) + frame("event", `{"contentBlockIndex":0,"delta":{"text":"hello world"}}`)},
		"invoke":  {Invoke, "application/vnd.amazon.eventstream", wrapped(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"hello world"}}`)},
		"cohere":  {CohereChat, "text/event-stream", "data: {\"type\":\"content-delta\",\"index\":0,\"delta\":{\"message\":{\"content\":{\"text\":\"hello world\"}}}}\n\n"},
		"mistral": {FIM, "text/event-stream", "data: {\"id\":\"x\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"hello world\"}}]}\n\n"},
		"chat":    {OllamaChat, "application/x-ndjson", "{\"model\":\"llama\",\"created_at\":\"2025\",\"message\":{\"role\":\"assistant\",\"content\":\"hello world\"}}\n"},
		"ollama":  {OllamaGenerate, "application/x-ndjson", "{\"model\":\"llama\",\"created_at\":\"2025\",\"response\":\"hello world\"}\n"},
	} {
		a := answerIn(row.api, row.contentType, []byte(row.body), func(left int) int { return left })
		if u := a.Usage(); a.Output() != 2 || u.Said() {
			t.Errorf("%s: %d tokens, %+v", name, a.Output(), u)
		}
	}
}

// Usage in headers counts where the body says none.
func TestUsageInHeaders(t *testing.T) {
	var r Reader
	var a Answer
	r.Start(&a, Invoke, exactly(""), "application/json")
	for _, h := range [][2]string{{"x-amzn-bedrock-input-token-count", "31"}, {"x-amzn-bedrock-output-token-count", "7"}, {"x-amzn-bedrock-output-token-count", "-1"}} {
		a.Header(h[0], h[1])
	}
	a.Feed([]byte(`{"results":[{"outputText":"hi"}]}`))
	if u := a.Usage(); u.Input != 31 || u.Output != 7 {
		t.Errorf("%+v", u)
	}
}

// Refusals are JSON in the form that the callers' libraries read.
func TestVoices(t *testing.T) {
	r := &Refusal{Refusal: policy.Refusal{Reason: policy.LimitExceeded, Limit: 100, Dimension: policy.TPM, Window: time.Minute}, RetryAfter: 12300 * time.Millisecond}
	for _, row := range []struct {
		dialect Dialect
		api     API
		path    string
		want    any
	}{
		{OpenAI, Chat, "error.code", "rate_limit_exceeded"},
		{Mistral, FIM, "error.code", "rate_limit_exceeded"},
		{Ollama, Chat, "error.code", "rate_limit_exceeded"},
		{Anthropic, Messages, "error.type", "rate_limit_error"},
		{Gemini, Messages, "error.type", "rate_limit_error"},
		{Gemini, Generate, "error.code", 429.0},
		{Gemini, Requests, "error.status", "RESOURCE_EXHAUSTED"},
		{Gemini, Generate, "error.details.0.retryDelay", "12.3s"},
		{Gemini, Generate, "weir.dimension", "tpm"},
		{Bedrock, Converse, "__type", "ThrottlingException"},
		{Anthropic, Invoke, "__type", "ThrottlingException"},
		{Cohere, CohereChat, "weir.reason", "limit_exceeded"},
		{Ollama, OllamaChat, "weir.reason", "limit_exceeded"},
		{Generic, Requests, "error.type", "tokens"},
	} {
		r.API = row.api
		p := row.dialect.Refuse(r)
		var v any
		if err := json.Unmarshal(p.Body, &v); err != nil {
			t.Fatalf("%v: %v: %s", row.dialect, err, p.Body)
		}
		for _, k := range strings.Split(row.path, ".") {
			if list, ok := v.([]any); ok {
				v = list[0]
				continue
			}
			m, _ := v.(map[string]any)
			v = m[k]
		}
		if v != row.want {
			t.Errorf("%v %v: %s is %v in %s", row.dialect, row.api, row.path, v, p.Body)
		}
	}
}

// The names in policies are those of the dialects.
func TestPoliciesKnowTheDialects(t *testing.T) {
	for d := Dialect(0); d < numDialects; d++ {
		spec := &policy.Spec{APIVersion: policy.APIVersion, Providers: map[string]policy.ProviderSpec{"x": {Cluster: "c", Dialect: d.String()}}}
		if _, err := policy.Compile(spec); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if back, ok := Parse(d.String()); !ok || back != d || d != Generic && d.Path() == "" {
			t.Errorf("%v: %v, %v, %q", d, back, ok, d.Path())
		}
	}
}
