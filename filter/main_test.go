// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// module builds the filter as it is now, and compiles it once for all tests.
var module = sync.OnceValues(func() (*filtertest.Module, error) { return built(filtertest.Compile) })

// built builds the filter and has it read.
func built(read func(file string) (*filtertest.Module, error), flags ...string) (*filtertest.Module, error) {
	dir, err := os.MkdirTemp("", "weir-filter-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "weir.wasm")
	build := exec.Command("go", append(append([]string{"run", "./internal/wasmflow"}, flags...), file)...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return read(file)
}

// process starts an Envoy with the filter, which ends with the test.
func process(t *testing.T, m *filtertest.Module, workers int, policy string) *filtertest.Process {
	t.Helper()
	p, err := filtertest.NewProcess(m, workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.Configure([]byte(policy)); err != nil {
		t.Fatal(err)
	}
	return p
}

// both runs a test on the filter's Go code and on the compiled wasm.
func both(t *testing.T, workers int, policy string, test func(t *testing.T, p *filtertest.Process)) {
	t.Helper()
	run := func(m *filtertest.Module) func(t *testing.T) {
		return func(t *testing.T) {
			p := process(t, m, workers, policy)
			test(t, p)
			if n := p.Metric("weir_panics_total"); n > 0 && p.Fail == nil {
				t.Errorf("%d panics: %v", n, p.Logs)
			}
		}
	}
	t.Run("native", run(nil))
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("wasm", run(m))
}

// A policy with one tenant limit of 100,000 tokens, all of which may be taken at once, so that what is left is what is not
// used; openai at /openai, anthropic at /anthropic, a generic tool at /tool.
const onePolicy = `{"apiVersion":"weir/v1","trust":["all"],
	"providers":{"openai":{"upstream":"http://openai.test"},"anthropic":{"upstream":"http://anthropic.test"},
		"tool":{"upstream":"http://tool.test","dialect":"generic"}},
	"limits":{"tenant":{"default":{"tpm":"100000","burst":"100%"}}}}`

const limit = 100_000

// chat is a call whose answer need not say its usage, so that its input is counted before it leaves.
func chat(tenant, text string, output int) filtertest.Request {
	return request("/openai/v1/chat/completions", tenant,
		fmt.Sprintf(`{"model":"gpt-4o","stream":true,"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, output, text))
}

func request(path, tenant, body string) filtertest.Request {
	return filtertest.Request{
		Path:    path,
		Headers: [][2]string{{"content-type", "application/json"}, {"x-tenant", tenant}},
		Body:    []byte(body),
	}
}

// used is how many tokens count for a tenant, as of the next tick: it asks for all there are, and is told what remains.
func used(t *testing.T, p *filtertest.Process, tenant string) int64 {
	t.Helper()
	p.Sleep(20 * time.Millisecond)
	const probe = 8 // tokens of "hi" as a message
	x := p.Worker(0).Open(chat(tenant, "hi", limit-probe))
	if x.Reply == nil {
		x.Answer(400, `{}`) // gives all back
		return 0
	}
	if x.Reply.Status != 429 {
		t.Fatalf("the probe was answered %d: %s", x.Reply.Status, x.Reply.Body)
	}
	_, rest, _ := strings.Cut(x.Reply.Headers.Get("ratelimit"), ";r=")
	left, _, _ := strings.Cut(rest, ";")
	n, err := strconv.ParseInt(left, 10, 64)
	if err != nil {
		t.Fatalf("no remaining in %v", x.Reply.Headers)
	}
	return limit - n
}

func field(t *testing.T, body, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%q is no JSON: %v", body, err)
	}
	for _, k := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}
