// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// All dialects, and a limit of one model of some of them.
const allPolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{
	"openai":{"upstream":"http://a.test","models":{"prod-4o":{"tpm":"10"}}},"anthropic":{"upstream":"http://b.test","models":{"claude-x":{"tpm":"10"}}},
	"gemini":{"upstream":"http://c.test","models":{"gemini-x":{"tpm":"10"}}},"bedrock":{"upstream":"http://d.test","models":{"us.anthropic.claude-x-v1:0":{"tpm":"10"}}},
	"cohere":{"upstream":"http://e.test"},"mistral":{"upstream":"http://f.test"},"ollama":{"upstream":"http://g.test"}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%"}}}}`

// A call of each dialect is charged what its answer says.
func TestEachDialectSettles(t *testing.T) {
	const body = `{"messages":[{"role":"user","content":"hi"}],"max_tokens":500}`
	both(t, 1, strings.Replace(allPolicy, `"openai":{"upstream":"http://a.test","models":{"prod-4o":{"tpm":"10"}}}`, `"openai":{"upstream":"http://a.test"}`, 1), func(t *testing.T, p *filtertest.Process) {
		for i, row := range []struct{ path, body, contentType, answer string }{
			{"/openai/openai/deployments/d/chat/completions?api-version=1", body, "text/event-stream", "data: {\"usage\":{\"prompt_tokens\":70,\"completion_tokens\":7}}\n\n"},
			{"/anthropic/v1/messages", body, "application/json", `{"usage":{"input_tokens":60,"cache_creation_input_tokens":10,"cache_read_input_tokens":900,"output_tokens":7}}`},
			{"/gemini/v1beta/models/g:streamGenerateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, "application/json", `[{"usageMetadata":{"promptTokenCount":70}},{"usageMetadata":{"promptTokenCount":70,"candidatesTokenCount":3,"thoughtsTokenCount":4}}]`},
			{"/bedrock/model/m/converse", `{"messages":[{"content":[{"text":"hi"}]}]}`, "application/json", `{"usage":{"inputTokens":70,"outputTokens":7,"cacheReadInputTokens":9}}`},
			{"/cohere/v2/chat", body, "application/json", `{"usage":{"tokens":{"input_tokens":70.0,"output_tokens":7.0}}}`},
			{"/mistral/v1/fim/completions", `{"model":"codestral","prompt":"a","suffix":"b"}`, "application/json", `{"usage":{"prompt_tokens":70,"completion_tokens":7}}`},
			{"/ollama/api/chat", body, "application/x-ndjson", "{\"message\":{\"content\":\"hi\"}}\n{\"done\":true,\"prompt_eval_count\":70,\"eval_count\":7}\n"},
		} {
			tenant := fmt.Sprint("t", i)
			x := p.Worker(0).Open(request(row.path, tenant, row.body))
			if !x.Sent {
				t.Fatalf("%s: %+v", row.path, x.Reply)
			}
			x.Respond(200, false, [2]string{"content-type", row.contentType})
			half := len(row.answer) / 2
			x.Chunk([]byte(row.answer[:half]), false)
			x.Chunk([]byte(row.answer[half:]), true)
			x.Close()
			if got := used(t, p, tenant); got != 77 {
				t.Errorf("%s: %d tokens count, want 77", row.path, got)
			}
		}
	})
}

// What is read from a cache is part of what makes usage absurd: it costs money.
func TestAbsurdCache(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		before := p.Metric("weir_charges_total.source.estimate")
		p.Worker(0).Open(request("/anthropic/v1/messages", "a", `{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)).
			Answer(200, `{"usage":{"input_tokens":5,"cache_read_input_tokens":99999999999,"output_tokens":1}}`)
		if p.Sleep(2 * time.Second); p.Metric("weir_charges_total.source.estimate") != before+1 {
			t.Errorf("%v", p.Metrics)
		}
	})
}

// The model that a path names is the one whose limits hold, and a denial is in the dialect of what was asked.
func TestModelInThePath(t *testing.T) {
	both(t, 1, allPolicy, func(t *testing.T, p *filtertest.Process) {
		for _, row := range []struct{ path, body, member string }{
			{"/openai/openai/deployments/prod-4o/chat/completions?api-version=1", `{"model":"other","max_tokens":500,"messages":[]}`, "error.code"},
			{"/anthropic/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:rawPredict", `{"max_tokens":500,"messages":[]}`, "error.type"},
			{"/gemini/v1beta/models/gemini-x:generateContent?key=k", `{"contents":[],"generationConfig":{"maxOutputTokens":500}}`, "error.status"},
			{"/bedrock/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A000000000000%3Ainference-profile%2Fus.anthropic.claude-x-v1%3A0/converse", `{"messages":[],"inferenceConfig":{"maxTokens":500}}`, "__type"},
		} {
			x := p.Worker(0).Open(request(row.path, "a", row.body))
			if x.Reply == nil || x.Reply.Status != 413 || x.Reply.Headers.Get("x-weir-tier") != "provider" {
				t.Fatalf("%s: %+v", row.path, x.Reply)
			}
			if field(t, x.Reply.Body, row.member) == nil {
				t.Errorf("%s: no %s in %s", row.path, row.member, x.Reply.Body)
			}
			if x := p.Worker(0).Open(request(strings.Replace(row.path, "claude-x", "other", 1), "a", row.body)); strings.Contains(row.path, "rawPredict") && !x.Sent {
				t.Errorf("%s: %+v", row.path, x.Reply)
			}
		}
	})
}

// Cached, reasoning and image tokens cost and count what the policy says; what Anthropic reads from its cache counts toward
// no limit and has its price.
func TestPricesAndWeightsByKind(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{"openai":{"upstream":"http://a.test"},"anthropic":{"upstream":"http://b.test"}},
		"prices":{"*":{"input":1000,"cached":100,"image":500,"output":2000,"reasoning":4000}},"weights":{"*":{"cached":"0%","reasoning":"50%"}},
		"limits":{"tenant":{"default":{LIMIT,"burst":"100%"}}}}`
	rows := []struct {
		path, answer string
		tokens       int64
		micro        int64 // dollars
	}{
		{"/openai/v1/chat/completions", `{"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":400,"image_tokens":100},"completion_tokens":100,"completion_tokens_details":{"reasoning_tokens":60}}}`,
			600 + 40 + 30, 500_000 + 40_000 + 50_000 + 80_000 + 240_000},
		{"/anthropic/v1/messages", `{"usage":{"input_tokens":500,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":100}}`,
			700, 600_000 + 200_000 + 200_000},
	}
	call := func(p *filtertest.Process, path, answer string) {
		x := p.Worker(0).Open(request(path, "a", `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"`+strings.Repeat("hello ", 2000)+`"}]}`))
		x.Answer(200, answer)
	}
	for _, row := range rows {
		both(t, 1, strings.Replace(policy, "LIMIT", `"tpm":"100000"`, 1), func(t *testing.T, p *filtertest.Process) {
			call(p, row.path, row.answer)
			if got := used(t, p, "a"); got != row.tokens {
				t.Errorf("%s: %d tokens count, want %d", row.path, got, row.tokens)
			}
		})
		both(t, 1, strings.Replace(policy, "LIMIT", `"usd_per_day":1000`, 1), func(t *testing.T, p *filtertest.Process) {
			call(p, row.path, row.answer)
			p.Sleep(20 * time.Millisecond)
			x := p.Worker(0).Open(chat("a", "hi", 499_996)) // all that there is: 8 tokens of input cost 8000 micro-dollars
			want := fmt.Sprint(";r=", 1_000_000_000-row.micro, ";")
			if x.Reply == nil || !strings.Contains(x.Reply.Headers.Get("ratelimit"), want) {
				t.Errorf("%s: no %s in %+v", row.path, want, x.Reply)
			}
		})
	}
}

// A key in the query and the access key of a signature name a caller as one in a header does, and what is signed stays.
func TestCredentialsOfOtherDialects(t *testing.T) {
	policy := strings.Replace(allPolicy, `"providers"`, `"who":{"tenant":["api-key"]},"providers"`, 1)
	sign := func(i int) [][2]string {
		return [][2]string{{"authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=AKID/2025/us-east-1/bedrock/aws4_request, SignedHeaders=accept-encoding;host, Signature=%d", i)}, {"accept-encoding", "gzip"}}
	}
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for name, open := range map[string]func(i int) filtertest.Request{
			"query": func(i int) filtertest.Request {
				return filtertest.Request{Path: fmt.Sprintf("/gemini/v1beta/models/g:generateContent?x=%d&key=secret", i), Body: []byte(`{"contents":[],"generationConfig":{"maxOutputTokens":30000}}`)}
			},
			"signature": func(i int) filtertest.Request {
				return filtertest.Request{Path: "/bedrock/model/m/converse", Headers: sign(i), Body: []byte(`{"messages":[],"inferenceConfig":{"maxTokens":30000}}`)}
			},
		} {
			for i := range 4 {
				x := p.Worker(0).Open(open(i))
				if x.Sent != (i < 3) {
					t.Errorf("%s, call %d: sent %v", name, i, x.Sent)
				}
				if x.Sent && name == "signature" && x.Upstream("accept-encoding") != "gzip" {
					t.Error("a header that is signed was changed")
				}
			}
		}
	})
}
