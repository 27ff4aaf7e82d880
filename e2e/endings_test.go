// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const endingsPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://MOCK", adapt: off}
  broken: {upstream: "http://127.0.0.1:1", dialect: openai}
limits:
  tenant:
    default: {tpm: 10_000, burst: 100%, in_flight: 1}
`

// fits says whether a tenant has at least so many tokens, and a slot, without using them.
func fits(t testing.TB, s *stack, tenant string, tokens int) bool {
	t.Helper()
	got := send(t, s.proxy, call{tenant: tenant, output: tokens - inputOfHi, headers: map[string]string{"x-mock-status": "400"}})
	if got[400]+got[429] != 1 {
		t.Fatal(got)
	}
	return got[400] == 1
}

// Whatever way a call ends, its slot is free at once, and what it did not use is back.
func TestEndings(t *testing.T) {
	t.Parallel()
	s := startStack(t, endingsPolicy)
	for name, end := range map[string]struct {
		run  func(t *testing.T, tenant string)
		left int // tokens
	}{
		"answered":                  {func(t *testing.T, tenant string) { send(t, s.proxy, call{tenant: tenant, output: 1000, input: 8}) }, 8_992},
		"provider refuses":          {func(t *testing.T, tenant string) { steer(t, s, tenant, "x-mock-status", "429") }, 10_000},
		"provider fails":            {func(t *testing.T, tenant string) { steer(t, s, tenant, "x-mock-status", "503") }, 10_000},
		"reset at once":             {func(t *testing.T, tenant string) { steer(t, s, tenant, "x-mock-cut", "headers") }, 10_000},
		"not reachable":             {func(t *testing.T, tenant string) { broken(t, s, tenant) }, 10_000},
		"caller leaves":             {func(t *testing.T, tenant string) { leave(t, s, tenant, 0) }, 9_992},
		"caller leaves while held":  {func(t *testing.T, tenant string) { leaveHeld(t, s, tenant) }, 10_000},
		"caller leaves in a stream": {func(t *testing.T, tenant string) { leave(t, s, tenant, 3) }, 9_950},
		"reset in a stream":         {func(t *testing.T, tenant string) { cut(t, s, tenant) }, 9_400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant := strings.ReplaceAll(name, " ", "-")
			end.run(t, tenant)
			eventually(t, 300*time.Millisecond, func() (bool, string) {
				return fits(t, s, tenant, end.left), fmt.Sprintf("%d tokens and a slot are not there", end.left)
			})
			if end.left < 10_000 && fits(t, s, tenant, 10_000) {
				t.Error("nothing was charged")
			}
		})
	}
}

func steer(t *testing.T, s *stack, tenant, header, value string) {
	send(t, s.proxy, call{tenant: tenant, output: 1000, headers: map[string]string{header: value}})
}

func broken(t *testing.T, s *stack, tenant string) {
	r := call{tenant: tenant, output: 1000}.request(s.proxy)
	r.URL.Path = "/broken/v1/chat/completions"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// leave leaves before the answer, or after some events of its stream.
func leave(t *testing.T, s *stack, tenant string, events int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	headers := map[string]string{"x-mock-latency": "5s"}
	if events > 0 {
		headers = map[string]string{"x-mock-chunks": "1000", "x-mock-chunk-delay": "20ms"}
	}
	r := call{tenant: tenant, output: 1000, stream: events > 0, headers: headers}.request(s.proxy).WithContext(ctx)
	if events == 0 {
		time.AfterFunc(300*time.Millisecond, cancel)
	}
	resp, err := http.DefaultClient.Do(r)
	if events == 0 {
		if err == nil {
			t.Fatal("there was an answer")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); events > 0 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") {
			events--
		}
	}
	if fits(t, s, tenant, 1000) {
		t.Error("the slot is free while the stream is open")
	}
}

// leaveHeld leaves while the filter still waits for the body.
func leaveHeld(t *testing.T, s *stack, tenant string) {
	conn, err := net.Dial("tcp", s.proxy)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Tenant: %s\r\nX-Mock-Tag: %s\r\nContent-Length: 100\r\n\r\n{\"model\":", tenant, tenant)
	time.Sleep(200 * time.Millisecond)
	conn.Close()
	time.Sleep(200 * time.Millisecond)
	if n := len(s.mock.events(tenant)); n != 0 {
		t.Errorf("it reached the provider")
	}
}

// cut has the provider break off in the middle of a stream.
func cut(t *testing.T, s *stack, tenant string) {
	resp, err := http.DefaultClient.Do(call{tenant: tenant, output: 1000, stream: true, headers: map[string]string{"x-mock-cut": "middle", "x-mock-chunks": "100"}}.request(s.proxy))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the stream was not cut")
	}
}
