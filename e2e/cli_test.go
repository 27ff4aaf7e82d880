// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// exec1 runs a weir command and gives its exit code and what it wrote.
func exec1(t testing.TB, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// What users do wrong is answered with exit code 2 and what to do instead, what fails with 1.
func TestErrorsOfTheCommandLine(t *testing.T) {
	good := writeFile(t, "good.yaml", "apiVersion: weir/v1\nproviders: {openai: {upstream: \"http://127.0.0.1:9\"}}\n")
	bad := writeFile(t, "bad.yaml", "apiVersion: weir/v1\nproviders:\n  openai:\n    upsteam: https://api.openai.com\n    models: {gpt-4o: {tpm: -1}}\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, row := range []struct {
		args []string
		env  []string
		code int
		says []string
	}{
		{[]string{"validate", good}, nil, 0, nil},
		{[]string{"validate", bad}, nil, 2, []string{"bad.yaml:4:5", "did you mean upstream", "bad.yaml:5:28", "providers.openai.models.gpt-4o.tpm"}},
		{[]string{"validate", bad + ".none"}, nil, 2, []string{"no such file"}},
		{[]string{"up", "--policy", bad}, nil, 2, []string{"did you mean upstream"}},
		{[]string{"up", "--policy", good, "--listen", "0.0.0.0:10000"}, nil, 2, []string{"0.0.0.0"}},
		{[]string{"serve", "--policy", good, "--xds", ":18000"}, nil, 2, []string{"other machines", "127.0.0.1:PORT", "--client-ca"}},
		{[]string{"bootstrap", "--policy", good, "--node", "n", "--admin", "127.0.0.1:9901"}, nil, 0, []string{"port_value: 9901"}},
		{[]string{"bootstrap", "--policy", good, "--node", "n", "--admin", "[::1]:9901", "--form", "whole"}, nil, 0, []string{"port_value: 9901"}},
		{[]string{"bootstrap", "--policy", good, "--node", "n", "--admin", "here", "--form", "whole"}, nil, 1, []string{"admin", "host:port"}},
		{[]string{"up", "--policy", good, "--listen", taken.Addr().String(), "--status", "127.0.0.1:0"}, nil, 1, []string{"in use", "--listen"}},
		{[]string{"up", "--policy", good, "--listen", "127.0.0.1:0", "--status", taken.Addr().String()}, nil, 1, []string{"in use", "--status"}},
		{[]string{"up", "--policy", good, "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0"}, []string{"ENVOY_PATH=/nowhere/envoy"}, 1, []string{"ENVOY_PATH", "/nowhere/envoy"}},
		{[]string{"mock", "--listen", taken.Addr().String()}, nil, 1, []string{"in use"}},
		{[]string{"mock", "--fail", "sometimes"}, nil, 2, []string{"sometimes"}},
		{[]string{"estimate", "/nowhere.json"}, nil, 2, []string{"/nowhere.json"}},
		{[]string{"simulate"}, nil, 0, []string{"agent-burst", "starvation", "window-edge"}},
		{[]string{"simulate", "agent-brst"}, nil, 2, []string{"did you mean agent-burst"}},
		{[]string{"frobnicate"}, nil, 2, []string{"frobnicate", "--help"}},
		{[]string{"--help"}, nil, 0, []string{"validate", "demo"}},
		{[]string{"up", "--help"}, nil, 0, []string{"Example", "weir up --policy", "127.0.0.1:10000", "127.0.0.1:10088"}},
		{[]string{"--version"}, nil, 0, []string{"Envoy 1.40.0"}},
		{[]string{"version"}, nil, 0, []string{"Envoy 1.40.0"}},
	} {
		code, out, errs := exec1(t, row.env, row.args...)
		if code != row.code {
			t.Errorf("weir %s: exit code %d, want %d\n%s%s", strings.Join(row.args, " "), code, row.code, out, errs)
		}
		for _, say := range row.says {
			if !strings.Contains(out+errs, say) {
				t.Errorf("weir %s does not say %q:\n%s%s", strings.Join(row.args, " "), say, out, errs)
			}
		}
	}
}

// weir estimate answers one line of JSON, or one for each line.
func TestEstimate(t *testing.T) {
	body := writeFile(t, "body.json", `{"model":"gpt-4o","max_tokens":7,"messages":[{"role":"user","content":"hello world"}]}`)
	lines := writeFile(t, "lines.jsonl", `{"id":1,"body":"{\"model\":\"gpt-4o\",\"messages\":[]}"}`+"\n\n"+`{"id":"x","text":"hello world"}`+"\n")
	text := writeFile(t, "text", "hello world")
	for _, row := range []struct{ want, args string }{
		{`{"input_tokens":9,"output_tokens":7,"dialect":"openai","model":"gpt-4o","how":"exact"}`, body},
		{`{"input_tokens":9,"output_tokens":7,"dialect":"anthropic","model":"claude-x","how":"estimate"}`, "--path /v1/messages --model claude-x " + body},
		{`{"input_tokens":2,"output_tokens":0,"model":"gpt-4o","how":"exact"}`, "--text " + text},
		{`{"id":1,"input_tokens":3,"output_tokens":1024,"dialect":"openai","model":"gpt-4o","how":"exact"}` + "\n" + `{"id":"x","input_tokens":2,"output_tokens":0,"model":"gpt-4o","how":"exact"}`, "--jsonl " + lines},
	} {
		out := run(t, append([]string{"estimate"}, strings.Fields(row.args)...)...)
		if strings.TrimSpace(out) != row.want {
			t.Errorf("weir estimate %s:\n%swant %s", row.args, out, row.want)
		}
	}
}

// The filter stays small: every worker of every Envoy compiles and holds it.
func TestFilterIsSmall(t *testing.T) {
	wasm, err := os.ReadFile("../build/weir.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if len(wasm) > 8_000_000 {
		t.Errorf("%d bytes", len(wasm))
	}
	for _, big := range []string{"fmt.(*pp)", "time.nextStdChunk", "encoding/json.", "reflect.Value."} {
		if bytes.Contains(wasm, []byte(big)) {
			t.Errorf("%s is linked, which is large: find out by whom (go build -ldflags=-dumpdep); policy/brief is for messages", big)
		}
	}
}

// The demo ends by itself when nobody watches, and leaves no process.
func TestDemo(t *testing.T) {
	code, out, errs := exec1(t, nil, "demo", "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0")
	for _, say := range []string{"acme", "globex", "initech", "With weir it answered 0 with a 429", "initech got 30 of 30", "tenant tpm", "status page", "curl"} {
		if !strings.Contains(out, say) {
			t.Errorf("it does not say %q", say)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// Both signals end weir up with code 0, and Envoy with it.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		s := startStack(t, openPolicy)
		if err := s.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.done:
		case <-time.After(15 * time.Second):
			t.Fatalf("%v does not end it", signal)
		}
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("after %v: exit code %d", signal, code)
		}
		if c, err := net.DialTimeout("tcp", s.proxy, time.Second); err == nil {
			c.Close()
			t.Errorf("after %v Envoy still listens on %s", signal, s.proxy)
		}
	}
}
