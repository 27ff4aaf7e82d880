// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirproxy/weir/filter/filtertest"
)

// degradePolicy has models of which each admits one call of up to 1,000 tokens, and their substitutes.
const degradePolicy = `{"apiVersion":"weir/v1","trust":["all"],"providers":{
		"openai":{"upstream":"http://openai.test","models":{"big*":{"tpm":"1000","burst":"100%"},"small":{"tpm":"5000","burst":"100%"},"tiny":{"tpm":"10"}}},
		"azure":{"upstream":"http://azure.test","dialect":"openai","models":{"*":{"tpm":"5000","burst":"100%"}}},
		"anthropic":{"upstream":"http://anthropic.test","models":{"claude-big":{"tpm":"1000","burst":"100%"},"claude-small":{"tpm":"5000","burst":"100%"}}},
		"gemini":{"upstream":"http://gemini.test","models":{"gemini-big":{"tpm":"1000","burst":"100%"},"*":{"tpm":"5000","burst":"100%"}}},
		"search":{"upstream":"http://search.test","dialect":"generic","models":{"*":{"rpm":"1"}}},
		"backup":{"upstream":"http://backup.test","dialect":"generic","models":{"*":{"rpm":"2","burst":"100%"}}}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%"}}},
	"classes":{"degrade":{"priority":4,"on_limit":"degrade"},"spill":{"priority":3,"on_limit":"spill"},
		"queue":{"priority":2,"on_limit":"queue","wait":"4m"},"deny":{"priority":1}},
	"degrade":{"big":{"model":"small"},"small":{"model":"tiny"},"big-capped":{"model":"small","max_tokens":"50"},"big-self":{"max_tokens":"50"},"big-tiny":{"model":"tiny"},
		"big-static":{"static":{"api":"chat","reply":"{\"a\":1}","stream":"data: {}\n\n"}},
		"big-gem":{"static":{"api":"generate","reply":"{\"a\":1}","stream":"data: {}\n\n"}},
		"claude-big":{"model":"claude-small"},"gemini-big":{"model":"gemini-small","max_tokens":"50"},"embed":{"model":"small"}},
	"spill":{"big":{"provider":"azure","model":"gpt-at-azure"},"big-job":{"provider":"backup"},"big-same":{"provider":"azure"},"claude-big":{"provider":"azure"},
		"search":{"provider":"backup"}}}`

const chatPath = "/openai/v1/chat/completions"

func inClass(class, path, body string) filtertest.Request {
	r := request(path, "a", body)
	r.Headers = append(r.Headers, [2]string{"x-priority", class})
	return r
}

func bodyOf(model string, output int, more string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,%s"messages":[]}`, model, output, more)
}

func answerHeader(x *filtertest.Exchange, name string) string {
	for _, h := range x.AnswerHeaders() {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// fill uses up a model, and gives the call that does.
func fill(t *testing.T, p *filtertest.Process, path, body string) *filtertest.Exchange {
	t.Helper()
	x := p.Worker(0).Open(inClass("deny", path, body))
	if !x.Sent {
		t.Fatalf("the first call: %+v", x.Reply)
	}
	return x
}

// What a limit refuses is sent to the smaller model, and only its name and its cap change; the caller is told.
func TestDegrades(t *testing.T) {
	const gemini = "/gemini/v1beta/models/gemini-big:generateContent"
	for _, row := range []struct {
		path, full, body, want string // want: the body as it leaves; empty: the path changes
		wantPath, model        string
	}{
		{chatPath, bodyOf("big", 950, ""), bodyOf("big", 300, ""), bodyOf("small", 300, ""), "", "small"},
		{chatPath, bodyOf("big", 950, ""), "\ufeff" + bodyOf("big", 300, `"stream" : true,"x":{"model":"big"},`), "\ufeff" + bodyOf("small", 300, `"stream" : true,"x":{"model":"big"},`), "", "small"},
		{chatPath, bodyOf("big", 950, ""), bodyOf("big-capped", 300, ""), bodyOf("small", 50, ""), "", "small"},
		{chatPath, bodyOf("big", 900, ""), bodyOf("big-self", 300, ""), bodyOf("big-self", 50, ""), "", "big-self"},
		{"/openai/v1/responses", bodyOf("big", 950, ""), `{"model":"big","max_output_tokens":300,"input":"hi"}`, `{"model":"small","max_output_tokens":300,"input":"hi"}`, "", "small"},
		{"/openai/v1/completions", bodyOf("big", 950, ""), `{"model":"big","max_tokens":300,"prompt":"hi"}`, `{"model":"small","max_tokens":300,"prompt":"hi"}`, "", "small"},
		{"/openai/openai/deployments/big/chat/completions?v=1", bodyOf("big", 950, ""), `{"max_tokens":300,"messages":[]}`, "", "/openai/openai/deployments/small/chat/completions?v=1", "small"},
		{"/anthropic/v1/messages", bodyOf("claude-big", 950, ""), bodyOf("claude-big", 300, `"stream":true,`), bodyOf("claude-small", 300, `"stream":true,`), "", "claude-small"},
		{gemini, `{"generationConfig":{"maxOutputTokens":950}}`, `{"contents":[]}`, `{"generationConfig":{"maxOutputTokens":50},"contents":[]}`, strings.Replace(gemini, "big", "small", 1), "gemini-small"},
	} {
		t.Run(row.path+row.model, func(t *testing.T) {
			both(t, 1, degradePolicy, func(t *testing.T, p *filtertest.Process) {
				fullPath := row.path
				if strings.HasPrefix(fullPath, "/openai") {
					fullPath = chatPath
				}
				fill(t, p, fullPath, row.full)
				x := p.Worker(0).Open(inClass("degrade", row.path, row.body))
				if !x.Sent {
					t.Fatalf("%+v", x.Reply)
				}
				want, wantPath := row.want, row.path
				if row.wantPath != "" {
					wantPath = row.wantPath
				}
				if want == "" {
					want = row.body
				}
				if string(x.Body) != want || x.Upstream(":path") != wantPath || x.Upstream("content-length") != strconv.Itoa(len(want)) {
					t.Errorf("%s %v\nwant %s %s", x.Body, x.Headers, want, wantPath)
				}
				if x.Upstream("x-priority") != "" || x.Upstream("x-tenant") != "" {
					t.Errorf("%v", x.Headers)
				}
				x.Respond(200, false, [2]string{"content-type", "application/json"}, [2]string{"x-weir-model", "forged"})
				if d, m := answerHeader(x, "x-weir-decision"), answerHeader(x, "x-weir-model"); d != "degrade" || m != row.model {
					t.Errorf("the caller is told %q %q", d, m)
				}
				x.Chunk([]byte(`{}`), true)
				x.Close()
				provider := p.Metric("weir_requests_total.decision.degrade.reason.limit_exceeded.tier.provider.dimension.tpm")
				if n := p.Metric("weir_requests_total.decision.deny"); provider != 1 || n != 0 {
					t.Errorf("counted %d and %d: %v", provider, n, p.Metrics)
				}
			})
		})
	}
}

// What is not to be degraded, or cannot be, is refused by the first limit, and nothing is held.
func TestDegradesNot(t *testing.T) {
	gzipped := func(r filtertest.Request) filtertest.Request {
		r.Headers = append(r.Headers, [2]string{"content-encoding", "x"})
		return r
	}
	signed := inClass("degrade", chatPath, bodyOf("big", 300, ""))
	signed.Headers = append(signed.Headers, [2]string{"authorization", "AWS4-HMAC-SHA256 Credential=x"})
	large := inClass("degrade", chatPath, bodyOf("big", 300, `"x":"`+strings.Repeat("x", 1<<20)+`",`))
	for name, row := range map[string]struct {
		r             filtertest.Request
		tier, refused string
	}{
		"its class denies":          {inClass("deny", chatPath, bodyOf("big", 300, "")), "provider", "limit_exceeded"},
		"no entry":                  {inClass("degrade", chatPath, bodyOf("big-same", 300, "")), "provider", "limit_exceeded"},
		"the smaller refuses, too":  {inClass("degrade", chatPath, bodyOf("big-tiny", 300, "")), "provider", "limit_exceeded"},
		"another form":              {inClass("degrade", "/openai/v1/responses", `{"model":"big-static","input":"hi","max_output_tokens":900}`), "provider", "limit_exceeded"},
		"in a coding":               {gzipped(inClass("degrade", chatPath, bodyOf("big", 300, ""))), "provider", "limit_exceeded"},
		"signed":                    {signed, "provider", "limit_exceeded"},
		"not read to its end":       {large, "provider", "limit_exceeded"},
		"an odd path":               {inClass("degrade", "/openai//deployments//big/chat%2Fcompletions", `{"max_tokens":900,"messages":[]}`), "provider", "limit_exceeded"},
		"embeddings":                {inClass("degrade", "/openai/v1/embeddings", `{"model":"big","input":"`+strings.Repeat("hi ", 500)+`"}`), "provider", "limit_exceeded"},
		"spilled without a way":     {inClass("spill", chatPath, bodyOf("big-tiny", 300, "")), "provider", "limit_exceeded"},
		"spilled to another tongue": {inClass("spill", "/anthropic/v1/messages", bodyOf("claude-big", 300, "")), "provider", "limit_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, 1, degradePolicy, func(t *testing.T, p *filtertest.Process) {
				before := fill(t, p, chatPath, bodyOf("big", 950, ""))
				fill(t, p, "/anthropic/v1/messages", bodyOf("claude-big", 900, ""))
				x := p.Worker(0).Open(row.r)
				if x.Reply == nil || x.Reply.Headers.Get("x-weir-tier") != row.tier || x.Reply.Headers.Get("x-weir-reason") != row.refused {
					t.Fatalf("sent %v: %+v", x.Sent, x.Reply)
				}
				if limit := x.Reply.Headers.Get("x-ratelimit-limit-tokens"); limit != "" && limit != "1000" {
					t.Errorf("the limit of another model: %v", x.Reply.Headers)
				}
				x.Close()
				before.Answer(400, `{}`)
				p.Sleep(20 * time.Millisecond)
				if again := p.Worker(0).Open(inClass("deny", chatPath, bodyOf("big", 950, ""))); !again.Sent {
					t.Errorf("something is held: %+v", again.Reply)
				}
			})
		})
	}
}

// A call is degraded once: not even if the smaller model has one that is smaller still.
func TestDegradesOnce(t *testing.T) {
	both(t, 1, degradePolicy, func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		fill(t, p, chatPath, bodyOf("small", 4990, ""))
		x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big", 60, "")))
		if x.Reply == nil || x.Reply.Headers.Get("x-ratelimit-limit-tokens") != "1000" {
			t.Errorf("sent %v as %s, %+v", x.Sent, x.Body, x.Reply)
		}
	})
}

// Who degrades passes nobody who waits for the smaller model.
func TestDegradesBehindOthers(t *testing.T) {
	both(t, 1, degradePolicy, func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		fill(t, p, chatPath, bodyOf("small", 4000, ""))
		if x := p.Worker(0).Open(inClass("queue", chatPath, bodyOf("small", 2000, ""))); !held(x) {
			t.Fatalf("it does not wait: %+v", x.Reply)
		}
		if x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big", 60, ""))); x.Sent {
			t.Error("it passed one that waits")
		}
		if x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big", 20, ""))); !x.Sent || string(x.Body) != bodyOf("big", 20, "") {
			t.Errorf("its own model has room: %+v", x.Reply)
		}
		if x := p.Worker(0).Open(inClass("queue", chatPath, bodyOf("big", 900, ""))); !held(x) {
			t.Fatalf("it does not wait: %+v", x.Reply)
		}
		x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big-static", 900, ""))) // others wait for its own model
		if x.Reply == nil || x.Reply.Status != 200 {
			t.Errorf("%v %+v", x.Sent, x.Reply)
		}
	})
}

// A fixed reply is for calls of its form; streams get it as a stream. It costs nothing.
func TestStaticReply(t *testing.T) {
	const gemini = "/openai/v1beta/models/big-gem:"
	for _, row := range []struct{ path, body, kind, want string }{
		{chatPath, bodyOf("big-static", 900, ""), "application/json", `{"a":1}`},
		{chatPath, bodyOf("big-static", 900, `"stream":true,`), "text/event-stream", "data: {}\n\n"},
		{gemini + "generateContent", `{"generationConfig":{"maxOutputTokens":900}}`, "application/json", `{"a":1}`},
		{gemini + "streamGenerateContent?alt=sse", `{"generationConfig":{"maxOutputTokens":900}}`, "text/event-stream", "data: {}\n\n"},
		{gemini + "streamGenerateContent", `{"generationConfig":{"maxOutputTokens":900}}`, "application/json", `[{"a":1}]`},
	} {
		policy := degradePolicy
		fullPath, full := chatPath, bodyOf("big", 950, "")
		if row.path != chatPath {
			policy = strings.Replace(policy, `"gemini-big":{"tpm"`, `"big*":{"tpm"`, 1)
			row.path = strings.Replace(row.path, "/openai", "/gemini", 1)
			fullPath, full = strings.Replace(gemini, "/openai", "/gemini", 1)+"generateContent", `{"generationConfig":{"maxOutputTokens":950}}`
		}
		both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
			fill(t, p, fullPath, full)
			before := used(t, p, "a")
			x := p.Worker(0).Open(inClass("degrade", row.path, row.body))
			if x.Reply == nil || x.Reply.Status != 200 || x.Reply.Body != row.want || x.Reply.Headers.Get("content-type") != row.kind ||
				x.Reply.Headers.Get("x-weir-decision") != "degrade" {
				t.Fatalf("%s: sent %v, %+v", row.path, x.Sent, x.Reply)
			}
			x.Close()
			if now := used(t, p, "a"); now != before {
				t.Errorf("it costs %d", now-before)
			}
			if n := p.Metric("weir_requests_total.decision.degrade"); n != 1 {
				t.Errorf("counted %d", n)
			}
		})
	}
}

// A call that is spilled leaves for another provider, by its path, with the model's name there; it counts there, and ends
// there.
func TestSpills(t *testing.T) {
	both(t, 1, degradePolicy, func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		x := p.Worker(0).Open(inClass("spill", chatPath+"?a=1", bodyOf("big", 300, "")))
		if !x.Sent || x.Upstream(":path") != "/azure/v1/chat/completions?a=1" || string(x.Body) != bodyOf("gpt-at-azure", 300, "") {
			t.Fatalf("%s %v %+v", x.Body, x.Headers, x.Reply)
		}
		same := p.Worker(0).Open(inClass("spill", chatPath, bodyOf("big-same", 300, "")))
		if !same.Sent || same.Upstream(":path") != "/azure/v1/chat/completions" || string(same.Body) != bodyOf("big-same", 300, "") {
			t.Fatalf("%s %v %+v", same.Body, same.Headers, same.Reply)
		}
		x.Respond(200, false, [2]string{"content-type", "application/json"})
		if d, m, pr := answerHeader(x, "x-weir-decision"), answerHeader(x, "x-weir-model"), answerHeader(x, "x-weir-provider"); d != "spill" || m != "gpt-at-azure" || pr != "azure" {
			t.Errorf("told %q %q %q", d, m, pr)
		}
		x.Chunk([]byte(`{"usage":{"prompt_tokens":40,"completion_tokens":4000}}`), true)
		x.Close()
		p.Sleep(20 * time.Millisecond)
		if y := p.Worker(0).Open(inClass("deny", "/azure/v1/chat/completions", bodyOf("gpt-at-azure", 900, ""))); y.Sent {
			t.Error("what was used at the other provider is not counted there")
		}
		if n := p.Metric("weir_requests_total.decision.spill.reason.limit_exceeded.tier.provider.dimension.tpm"); n != 2 {
			t.Errorf("counted %d", n)
		}
		job := p.Worker(0).Open(inClass("spill", chatPath, bodyOf("big-job", 300, `"stream":true,`)))
		if !job.Sent || job.Upstream(":path") != "/backup/v1/chat/completions" || string(job.Body) != bodyOf("big-job", 300, `"stream":true,`) {
			t.Fatalf("%s %v %+v", job.Body, job.Headers, job.Reply)
		}
		job.Respond(202, false, [2]string{"content-type", "application/json"})
		if d, m := answerHeader(job, "x-weir-decision"), answerHeader(job, "x-weir-model"); d != "spill" || m != "" {
			t.Errorf("told %q %q, but nobody knows the model", d, m)
		}
		job.Chunk([]byte(`{"job":1}`), true)
		job.Close()
		w := p.Worker(0)
		if x := w.Open(inClass("deny", "/search/q", `{}`)); !x.Sent {
			t.Fatalf("%+v", x.Reply)
		}
		tool := w.Open(inClass("spill", "/search/q?b", `{}`))
		if !tool.Sent || tool.Upstream(":path") != "/backup/q?b" {
			t.Errorf("a tool: %v %+v", tool.Headers, tool.Reply)
		}
		if x := w.Open(inClass("spill", "/search/q", `{}`)); x.Reply == nil || x.Reply.Headers.Get("x-weir-dimension") != "rpm" {
			t.Errorf("both have had all they may, but %+v", x.Reply)
		}
	})
}

// The next call of a tree that has used up its retries is for the smaller model; one more retry is refused.
func TestDegradesAfterRetries(t *testing.T) {
	policy := strings.Replace(degradePolicy, `"limits":{`, `"limits":{"tree":{"default":{"on_retries_spent":"degrade"}},`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		call := func(retry string) *filtertest.Exchange {
			r := inClass("deny", chatPath, bodyOf("big", 10, ""))
			r.Headers = append(r.Headers, [2]string{"x-request-tree", "t"}, [2]string{"x-stainless-retry-count", retry})
			return p.Worker(0).Open(r)
		}
		for i, retry := range []string{"0", "1", "0", "2"} {
			if x := call(retry); !x.Sent || string(x.Body) != bodyOf("big", 10, "") {
				t.Fatalf("call %d: %s %+v", i, x.Body, x.Reply)
			}
		}
		if x := call("0"); !x.Sent || string(x.Body) != bodyOf("small", 10, "") {
			t.Errorf("after two retries: %s %+v", x.Body, x.Reply)
		}
		if x := call("3"); x.Reply == nil || x.Reply.Headers.Get("x-weir-reason") != "retry_budget_exhausted" {
			t.Errorf("a third retry: %s %+v", x.Body, x.Reply)
		}
		if n := p.Metric("weir_requests_total.decision.degrade.reason.retry_budget_exhausted"); n != 1 {
			t.Errorf("counted %d: %v", n, p.Metrics)
		}
		fill(t, p, chatPath, bodyOf("small", 4975, ""))
		if x := call("0"); !x.Sent || string(x.Body) != bodyOf("big", 10, "") {
			t.Errorf("the smaller one has no room: %s %+v", x.Body, x.Reply)
		}
	})
	both(t, 1, strings.Replace(policy, `"providers"`, `"mode":"shadow","providers"`, 1), func(t *testing.T, p *filtertest.Process) {
		for _, retry := range []string{"1", "2", "3", "0"} {
			r := inClass("degrade", chatPath, bodyOf("big", 10, ""))
			r.Headers = append(r.Headers, [2]string{"x-request-tree", "t"}, [2]string{"x-stainless-retry-count", retry})
			if x := p.Worker(0).Open(r); !x.Sent || string(x.Body) != bodyOf("big", 10, "") {
				t.Errorf("in shadow mode: %s %+v", x.Body, x.Reply)
			}
		}
	})
	// Neither for a retry nor for another budget that is spent; and what is not degraded counts as it came.
	policy = strings.Replace(degradePolicy, `"limits":{`, `"limits":{"tree":{"default":{"retries":"1","calls":"4","on_retries_spent":"degrade"}},`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		call := func(tree, class, retry, body string) *filtertest.Exchange {
			r := inClass(class, chatPath, body)
			r.Headers = append(r.Headers, [2]string{"x-request-tree", tree}, [2]string{"x-stainless-retry-count", retry})
			return p.Worker(0).Open(r)
		}
		static := bodyOf("big-static", 10, "")
		for _, tree := range []string{"a", "b"} {
			for i, retry := range []string{"1", "0", "2", "0"} {
				x := call(tree, "degrade", retry, static)
				if replied := x.Reply != nil; replied != (i > 0) || replied && (x.Reply.Status == 200) != (retry == "0") {
					t.Errorf("tree %s, call %d: %v %+v", tree, i, x.Sent, x.Reply)
				}
			}
		}
		for range 4 {
			call("c", "deny", "0", bodyOf("none", 1, ""))
		}
		if x := call("c", "deny", "0", static); x.Reply == nil || x.Reply.Headers.Get("x-weir-dimension") != "calls" {
			t.Errorf("calls are spent, not retries: %+v", x.Reply)
		}
		call("d", "deny", "1", bodyOf("none", 1, ""))
		fill(t, p, chatPath, bodyOf("small", 4990, ""))
		if x := call("d", "deny", "0", bodyOf("big-capped", 850, `"stream":true,`)); !x.Sent || string(x.Body) != bodyOf("big-capped", 850, `"stream":true,`) {
			t.Fatalf("%s %+v", x.Body, x.Reply)
		}
		if x := call("e", "deny", "0", bodyOf("big", 80, `"stream":true,`)); x.Sent {
			t.Error("what was not degraded was counted as if it had been")
		}
	})
}

// At another provider what holds there holds: its tools, its way with streams, its prefix.
func TestSpillsByTheRulesThere(t *testing.T) {
	policy := strings.NewReplacer(`"limits":{`, `"limits":{"tool":{"root":{"rpm":"1"},"backup":{"rpm":"1"}},`,
		`"azure":{"upstream":"http://azure.test",`, `"root":{"upstream":"http://root.test","prefix":"/","dialect":"generic"},"azure":{"upstream":"http://azure.test","stream":{"include_usage":"add"},`,
		`"spill":{"big"`, `"spill":{"big-odd*":{"provider":"azure"},"big-own":{"provider":"azure","model":"big-other"},"big"`, `"*":{"tpm":"5000"`, `"big-own":{"tpm":"5"},"*":{"tpm":"5000"`,
		`"search":{"provider":"backup"}`, `"search":{"provider":"root"}`,
	).Replace(degradePolicy)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		w := p.Worker(0)
		w.Open(inClass("deny", "/search", `{}`))
		if x := w.Open(inClass("spill", "/search?a", `{}`)); !x.Sent || x.Upstream(":path") != "/?a" {
			t.Errorf("%v %+v", x.Headers, x.Reply)
		}
		if x := w.Open(inClass("spill", "/search", `{}`)); x.Sent {
			t.Error("the tool there has no limit")
		}
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		if x := w.Open(inClass("spill", chatPath, bodyOf("big-job", 300, ""))); !x.Sent {
			t.Errorf("%+v", x.Reply)
		}
		if x := w.Open(inClass("spill", chatPath, bodyOf("big-job", 300, ""))); x.Sent {
			t.Error("the tool there has no limit")
		}
		x := w.Open(inClass("spill", chatPath, bodyOf("big-same", 300, `"stream":true,`)))
		if want := strings.Replace(bodyOf("big-same", 300, `"stream":true,`), "{", `{"stream_options":{"include_usage":true},`, 1); string(x.Body) != want || x.Upstream("content-length") != strconv.Itoa(len(want)) {
			t.Errorf("%s %v %+v", x.Body, x.Headers, x.Reply)
		}
		odd := w.Open(inClass("spill", chatPath, strings.Replace(bodyOf("big-odd", 300, ""), "big-odd", `big-odd\n`, 1)))
		odd.Respond(200, true)
		if answerHeader(odd, "x-weir-decision") != "spill" || answerHeader(odd, "x-weir-model") != "" {
			t.Errorf("%+v %v", odd.Reply, odd.AnswerHeaders())
		}
		if x := w.Open(inClass("spill", "/azure/v1/chat/completions", bodyOf("big-own", 300, ""))); x.Sent {
			t.Errorf("spilled to where it was: %s", x.Body)
		}
	})
	both(t, 1, strings.Replace(degradePolicy, `,"stream":"data: {}\n\n"`, "", 1), func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		if x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big-static", 300, `"stream":true,`))); x.Reply == nil || x.Reply.Status != 429 {
			t.Errorf("a fixed reply without a stream: %+v", x.Reply)
		}
	})
}

// Whatever is asked and however it ends: each call is held by the buckets of the model that it was sent to, and no others, and
// when all are over nothing is held.
func TestDegradedHoldsOnce(t *testing.T) {
	models := []string{"big", "big-capped", "big-self", "big-tiny", "big-static", "big-same", "big-job", "small", "none"}
	policy := degradePolicy
	for _, tpm := range []string{`"tpm":"1000"`, `"tpm":"5000"`} {
		policy = strings.ReplaceAll(policy, tpm, tpm+`,"in_flight":"5"`)
	}
	policy = strings.ReplaceAll(policy, `{"upstream":`, `{"adapt":{"off":true},"upstream":`) // else refusals cut rates, too
	rapid.Check(t, func(rt *rapid.T) {
		p, err := filtertest.NewProcess(nil, 2)
		if err != nil {
			rt.Fatal(err)
		}
		defer p.Close()
		if err := p.Configure([]byte(policy)); err != nil {
			rt.Fatal(err)
		}
		open := map[string][]*filtertest.Exchange{} // by pool
		pool := func(x *filtertest.Exchange) string {
			name, _, _ := strings.Cut(x.Upstream(":path")[1:], "/")
			if name == "openai" && strings.Contains(string(x.Body), `"small"`) {
				return "small"
			}
			return name
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			class := rapid.SampledFrom([]string{"degrade", "spill", "deny"}).Draw(rt, "class")
			model := rapid.SampledFrom(models).Draw(rt, "model")
			x := p.Worker(rapid.IntRange(0, 1).Draw(rt, "worker")).Open(inClass(class, chatPath, bodyOf(model, rapid.IntRange(1, 400).Draw(rt, "output"), "")))
			if x.Sent {
				open[pool(x)] = append(open[pool(x)], x)
			}
			for _, name := range []string{"openai", "small", "azure", "backup"} {
				calls := open[name]
				if most := map[string]int{"small": 5, "azure": 5, "openai": 100, "backup": 2}[name]; len(calls) > most && name != "backup" {
					rt.Fatalf("%d calls at %s", len(calls), name)
				}
				if len(calls) > 0 && rapid.IntRange(0, 3).Draw(rt, "ends") == 0 {
					x := calls[0]
					open[name] = calls[1:]
					rapid.SampledFrom([]func(){
						func() { x.Answer(400, `{}`) }, func() { x.Answer(429, `{}`) }, func() { x.Answer(500, ``) },
					}).Draw(rt, "how")()
					x.Close()
				}
			}
			p.Sleep(time.Duration(rapid.IntRange(0, 250).Draw(rt, "ms")) * time.Millisecond)
		}
		for _, calls := range open {
			for _, x := range calls {
				x.Answer(400, `{}`)
			}
		}
		p.Sleep(38 * time.Second) // a bucket refills; what is not given back stays in the ring for a minute
		// No call cost anything, so all is back: each pool admits five at once, which need all of it. (Streams: they are counted exactly.)
		for _, all := range []struct {
			path, model string
			output      int
		}{{chatPath, "big", 190}, {chatPath, "small", 990}, {"/azure/v1/chat/completions", "x", 990}} {
			for i := range 5 {
				if x := p.Worker(i).Open(inClass("deny", all.path, bodyOf(all.model, all.output, `"stream":true,`))); !x.Sent {
					rt.Fatalf("call %d of %s: %+v", i, all.model, x.Reply)
				}
			}
		}
		if n := p.Metric("weir_panics_total"); n > 0 {
			rt.Fatalf("%v", p.Logs)
		}
	})
}

// Usage counts as the model that was used counts it.
func TestDegradedUsage(t *testing.T) {
	policy := strings.Replace(degradePolicy, `"degrade":{"big"`, `"weights":{"small":{"cached":"0%"}},"degrade":{"big"`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, "")).Answer(200, `{"usage":{"prompt_tokens":900,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":900}}}`)
		before := used(t, p, "a")
		x := p.Worker(0).Open(inClass("degrade", chatPath, bodyOf("big", 300, "")))
		if string(x.Body) != bodyOf("small", 300, "") {
			t.Fatalf("%s %+v", x.Body, x.Reply)
		}
		x.Answer(200, `{"usage":{"prompt_tokens":900,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":900}}}`)
		if n := used(t, p, "a") - before; n != 7 {
			t.Errorf("it counts as %d tokens, want 7", n)
		}
	})
}

// The log says what became of a call, and which limit was in its way.
func TestDegradedLog(t *testing.T) {
	policy := strings.Replace(degradePolicy, `"providers"`, `"log":{"deny":"warn"},"providers"`, 1)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		fill(t, p, chatPath, bodyOf("big", 950, ""))
		for _, row := range []struct{ class, model, want string }{
			{"degrade", "big", `weir decision=degrade reason=limit_exceeded tier=provider dimension=tpm limit=1000 need=303 wait_ms=62000 status=200 request_id="" ` +
				`attempt=1 waited_ms=0 provider=openai model="small" class=degrade how=estimate input=3 output=300 ending=complete source=usage charged_input=1 charged_output=2`},
			{"spill", "big-same", `weir decision=spill reason=limit_exceeded tier=provider dimension=tpm limit=1000 need=303 wait_ms=62000 status=200 request_id="" ` +
				`attempt=1 waited_ms=0 provider=azure model="big-same" class=spill how=estimate input=3 output=300 ending=complete source=usage charged_input=1 charged_output=2`},
			{"degrade", "big-static", `weir decision=degrade reason=limit_exceeded tier=provider dimension=tpm limit=1000 need=303 wait_ms=62000 status=200 request_id="" ` +
				`attempt=1 waited_ms=0 provider=openai model="big-static" class=degrade`},
		} {
			x := p.Worker(0).Open(inClass(row.class, chatPath, bodyOf(row.model, 300, "")))
			if x.Sent {
				x.Answer(200, `{"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
			}
			x.Close()
			if n := len(p.Logs); n == 0 || p.Logs[n-1] != row.want {
				t.Errorf("logged %q\nwant %q", p.Logs, row.want)
			}
		}
	})
}
