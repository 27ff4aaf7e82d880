// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	binary   = "../bin/weir"
	trapWasm = "../build/weir-trap.wasm"

	startTimeout = 3 * time.Minute // of an Envoy that compiles the filter, with others that do
)

func TestMain(m *testing.M) {
	for _, file := range []string{binary, trapWasm} {
		if _, err := os.Stat(file); err != nil {
			println("e2e: " + err.Error() + ": run make test, or make build build/weir-trap.wasm")
			os.Exit(1)
		}
	}
	state, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_STATE_HOME", state) // of all control planes that are not told otherwise
	code := m.Run()
	os.RemoveAll(state)
	os.Exit(code)
}

// output is what a process writes, safe to read while it writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// A process is a weir command that runs until the test ends.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr output
	lines  chan string // of standard output
	done   chan struct{}
}

// start starts a weir command and shows what it wrote if the test fails.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary, args...), lines: make(chan string, 1000), done: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			select {
			case p.lines <- s.Text():
			default: // nobody waits for more
			}
		}
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("weir %s wrote:\n%s", strings.Join(args, " "), tail(p.stderr.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string { return s[max(len(s)-n, 0):] }

// stop ends the process as a user would, and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Errorf("it does not end: %v", p.cmd.Args)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// find waits for a line of output that matches, and gives the match's first group.
func (p *process) find(pattern string) string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.After(startTimeout); ; {
		select {
		case line := <-p.lines:
			if m := re.FindStringSubmatch(line); m != nil {
				return m[1]
			}
		case <-p.done:
			p.t.Fatalf("it ended before it wrote %s:\n%s", pattern, p.stderr.String())
		case <-deadline:
			p.t.Fatalf("it never wrote %s:\n%s", pattern, p.stderr.String())
		}
	}
}

// writeFile writes a file into the test's folder.
func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	replaceFile(t, path, content)
	return path
}

// replaceFile replaces a file at once, as a careful editor does.
func replaceFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds, and shows the last reason why it did not.
func eventually(t testing.TB, wait time.Duration, condition func() (ok bool, why string)) {
	t.Helper()
	for deadline := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		ok, why := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", wait, why)
		}
	}
}

// get reads a page.
func get(t testing.TB, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}
