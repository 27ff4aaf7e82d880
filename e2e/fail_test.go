// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// A split is control plane and Envoy apart, as in a fleet.
type split struct {
	t      *testing.T
	mock   *mockProvider
	policy string
	xds    string
	status string
	wasm   string
	serve  *process
	envoy  *envoy.Process
	proxy  string
}

// freePort gives an address on which something can listen in a moment.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// run runs a weir command to its end.
func run(t testing.TB, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func newSplit(t *testing.T, policy string) *split {
	t.Helper()
	s := &split{t: t, mock: startMock(t), xds: freePort(t), status: freePort(t)}
	s.policy = writeFile(t, "policy.yaml", strings.ReplaceAll(policy, "MOCK", s.mock.addr))
	s.wasm = strings.TrimSpace(run(t, "wasm", "--dir", t.TempDir()))
	return s
}

// control starts the control plane, or starts it again.
func (s *split) control() {
	s.t.Helper()
	s.serve = start(s.t, "serve", "--policy", s.policy, "--xds", s.xds, "--status", s.status, "--listen", "127.0.0.1:0")
	s.serve.find(`^control plane: xDS on (\S+),`)
}

// startEnvoy starts an Envoy with two workers from what weir bootstrap prints, with what an edit makes of it. It gives what
// Envoy writes.
func (s *split) startEnvoy(form string, edits ...func(string) string) *output {
	s.t.Helper()
	args := []string{"bootstrap", "--policy", s.policy, "--node", "e2e", "--xds", s.xds, "--control", s.status, "--wasm", s.wasm, "--form", form}
	if form == "whole" {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	bootstrap := run(s.t, args...)
	for _, edit := range edits {
		bootstrap = edit(bootstrap)
	}
	log := new(output)
	p, err := envoy.Run(context.Background(), envoy.Options{
		Bootstrap: []byte(bootstrap), Concurrency: 2, Log: log, StartTimeout: startTimeout,
	})
	if err != nil {
		s.t.Fatalf("%v\n%s", err, tail(log.String(), 3000))
	}
	s.envoy = p
	s.t.Cleanup(func() {
		_ = p.Stop()
		if s.t.Failed() {
			s.t.Logf("Envoy wrote:\n%s", tail(log.String(), 4000))
		}
	})
	if s.proxy, err = p.Listener(context.Background(), "weir"); err != nil {
		s.t.Fatal(err)
	}
	return log
}

func tinyPolicy(tpm int) string {
	return fmt.Sprintf("apiVersion: weir/v1\ntrust: [all]\nproviders:\n  openai: {upstream: \"http://MOCK\"}\nlimits:\n  tenant:\n    default: {tpm: %d, burst: 100%%, scope: node}\n", tpm)
}

// limits says whether a call of 500 tokens is too large: the limit of the policy in force is below or above.
func (s *split) status500() int {
	for status := range send(s.t, s.proxy, call{tenant: fmt.Sprint(time.Now().UnixNano()), output: 500}) {
		return status
	}
	return 0
}

// The control plane is killed: traffic goes on with the last policy. It comes back: changes apply, without a restart.
func TestControlPlaneIsKilled(t *testing.T) {
	t.Parallel()
	s := newSplit(t, tinyPolicy(100))
	s.control()
	s.startEnvoy("ads")
	if got := s.status500(); got != 413 {
		t.Fatalf("status %d", got)
	}
	s.serve.kill()
	for range 20 {
		if got := s.status500(); got != 413 {
			t.Fatalf("without a control plane: status %d", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(1000), "MOCK", s.mock.addr))
	s.control()
	eventually(t, 30*time.Second, func() (bool, string) {
		got := s.status500()
		return got == 200, fmt.Sprintf("the new policy does not apply: status %d", got)
	})
}

// A policy that was compiled into the bootstrap limits, though there was never a control plane; when one comes, it takes
// over.
func TestFragmentWithoutControlPlane(t *testing.T) {
	t.Parallel()
	s := newSplit(t, tinyPolicy(100))
	s.startEnvoy("whole")
	eventually(t, 10*time.Second, func() (bool, string) {
		got := s.status500()
		return got == 413, fmt.Sprintf("status %d", got)
	})
	if got := send(t, s.proxy, call{tenant: "a", output: 50}); got[200] != 1 {
		t.Errorf("%v", got)
	}
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(1000), "MOCK", s.mock.addr))
	s.control()
	eventually(t, 30*time.Second, func() (bool, string) {
		got := s.status500()
		return got == 200, fmt.Sprintf("the control plane's policy does not apply: status %d", got)
	})
}

// A push whose wasm file is not there is refused, the refusal is shown, and the old policy serves; once the file is there,
// the next policy is taken.
func TestMissingWasmFile(t *testing.T) {
	t.Parallel()
	s := newSplit(t, tinyPolicy(100))
	s.control()
	s.startEnvoy("ads")
	if err := os.Rename(s.wasm, s.wasm+".away"); err != nil {
		t.Fatal(err)
	}
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(1000), "MOCK", s.mock.addr))
	eventually(t, 10*time.Second, func() (bool, string) {
		page := readStatus(t, s.status)
		for _, n := range page.Nodes {
			for _, typ := range n.Types {
				if typ.NACK != nil && strings.Contains(typ.NACK.Message, "weir-") {
					return true, ""
				}
			}
		}
		return false, fmt.Sprintf("no NACK is shown: %+v", page)
	})
	if got := s.status500(); got != 413 {
		t.Errorf("after a push whose file is missing: status %d", got)
	}
	if err := os.Rename(s.wasm+".away", s.wasm); err != nil {
		t.Fatal(err)
	}
	replaceFile(t, s.policy, strings.ReplaceAll(tinyPolicy(2000), "MOCK", s.mock.addr))
	eventually(t, 20*time.Second, func() (bool, string) {
		got := s.status500()
		return got == 200, fmt.Sprintf("the next policy is not taken: status %d", got)
	})
}

// trapping makes a copy of the filter that traps on command, under the name that weir gives to filters.
func trapping(t testing.TB) string {
	t.Helper()
	code, err := os.ReadFile(trapWasm)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(code)
	path := filepath.Join(t.TempDir(), "weir-"+hex.EncodeToString(sum[:4])+".wasm")
	if err := os.WriteFile(path, code, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const trapPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK"}
limits:
  tenant:
    default: {in_flight: 10}
`

// A worker's VM dies, with calls in flight and one held: the other worker goes on, the dead one comes back, and the slots
// that it held are free when their lease ends.
func TestWorkerTraps(t *testing.T) {
	t.Parallel()
	s := newSplit(t, trapPolicy)
	s.wasm = trapping(t)
	s.control()
	s.startEnvoy("ads")
	var broken, whole atomic.Int64
	var streams sync.WaitGroup
	for range 10 {
		streams.Go(func() {
			if s.longStream() {
				whole.Add(1)
			} else {
				broken.Add(1)
			}
		})
	}
	eventually(t, 5*time.Second, func() (bool, string) { return len(s.mock.events("a")) == 10, "not all streams have come" })
	if got := s.slot(); got != 429 {
		t.Fatalf("an eleventh call: status %d", got)
	}
	// One more is held while its body is on the way, on some worker.
	body, hold := io.Pipe()
	r := call{tenant: "held", output: 1}.request(s.proxy)
	r.Body, r.ContentLength = body, -1
	held := make(chan struct{})
	go func() {
		defer close(held)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	time.Sleep(200 * time.Millisecond)
	for try := 0; broken.Load() == 0; try++ { // until it hits a worker that has streams
		if try == 20 {
			t.Fatal("no trap broke a stream")
		}
		s.trap()
		for i := range 10 {
			if got := send(t, s.proxy, call{tenant: fmt.Sprint("other", try, i), output: 1}); got[200] != 1 && got[503] != 1 {
				t.Errorf("call %d after the trap: %v", i, got)
			}
		}
		time.Sleep(1500 * time.Millisecond) // a stream notices with its next event
	}
	if got := s.slot(); got != 429 {
		t.Errorf("slots of a dead worker are free at once (status %d), though nobody can know that it is dead", got)
	}
	freed := time.Now()
	eventually(t, 20*time.Second, func() (bool, string) { return s.slot() == 200, "the slots of the dead worker do not come back" })
	t.Logf("%d streams broke; the first slot was free %v after", broken.Load(), time.Since(freed).Round(time.Second))
	eventually(t, 10*time.Second, func() (bool, string) {
		got := send(t, s.proxy, call{tenant: "b", output: 1})
		return got[200] == 1, fmt.Sprintf("the workers do not serve: %v", got)
	})
	hold.Close()
	<-held
	streams.Wait()
	if whole.Load()+broken.Load() != 10 {
		t.Errorf("%d streams were whole, %d broken", whole.Load(), broken.Load())
	}
}

// longStream reads a stream of 25 s on a connection of its own, and says whether it came to its end.
func (s *split) longStream() bool {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(call{tenant: "a", output: 25, stream: true, headers: map[string]string{"x-mock-chunks": "25", "x-mock-chunk-delay": "1s"}}.request(s.proxy))
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return err == nil && strings.HasSuffix(string(b), "data: [DONE]\n\n")
}

// slot asks for one more call in flight, and gives the status.
func (s *split) slot() int {
	for status := range send(s.t, s.proxy, call{tenant: "a", output: 1}) {
		return status
	}
	return 0
}

// trap kills the VM of some worker.
func (s *split) trap() {
	s.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(call{tenant: "t", output: 1, headers: map[string]string{"x-weir-trap": "1"}}.request(s.proxy))
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		s.t.Errorf("the call that trapped: status %d", resp.StatusCode)
	}
}
