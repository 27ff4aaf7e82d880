// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Nobody here is trusted, and a chat of 1000 tokens is more than anybody may have.
const smugglePolicy = `
apiVersion: weir/v1
trust: [9.9.9.0/24]
providers:
  openai: {upstream: "http://MOCK"}
  tool:   {upstream: "http://MOCK", dialect: generic}
limits:
  tenant:
    default: {tpm: 100}
    rich:    {tpm: 1_000_000}
`

const chatOf1000 = `{"model":"gpt-4o","max_tokens":1000,"messages":[{"role":"user","content":"hi"}]}`

// raw sends bytes, and gives the status of each answer until Envoy closes, or says no more.
func raw(t *testing.T, addr, text string) (statuses []int, last string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, last
		}
		b, _ := io.ReadAll(resp.Body)
		statuses, last = append(statuses, resp.StatusCode), string(b)
		if _ = c.SetDeadline(time.Now().Add(300 * time.Millisecond)); resp.Close {
			return statuses, last
		}
	}
}

// post is a request as bytes.
func post(path, tag, body string, headers ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-mock-tag: %s@0\r\ncontent-length: %d\r\n%s\r\n%s",
		path, tag, len(body), strings.Join(append(headers, ""), "\r\n"), body)
}

// No way of writing a request gets one past the filter that it would refuse.
func TestRequestSmuggledPastTheFilter(t *testing.T) {
	t.Parallel()
	s := startStack(t, smugglePolicy)
	hidden := post("/openai/v1/chat/completions", "hidden", chatOf1000)
	attacks := map[string]string{
		"content-length and chunks":  "POST /tool/x HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two content-lengths":        "POST /tool/x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\ncontent-length: 9\r\n\r\n" + hidden,
		"an odd transfer-encoding":   "POST /tool/x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\ncontent-length: 0\r\n\r\n" + hidden,
		"a line break in a header":   "POST /tool/x HTTP/1.1\r\nhost: x\r\nx-a: b\n c\r\ncontent-length: 0\r\n\r\n" + hidden,
		"a fragment":                 post("/openai/v1/models#/v1/chat/completions", "hidden", chatOf1000),
		"GET that says it is a POST": strings.Replace(post("/openai/v1/chat/completions", "hidden", chatOf1000, "x-http-method-override: POST"), "POST", "GET", 1),
		"CONNECT":                    "CONNECT /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\n\r\n" + hidden,
		"websocket":                  "GET /openai/v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n" + hidden,
		"h2c":                        strings.Replace(hidden, "\r\n\r\n", "\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", 1),
		"a trusted address":          post("/openai/v1/chat/completions", "hidden", chatOf1000, "x-forwarded-for: 9.9.9.9", "x-real-ip: 9.9.9.9", "forwarded: for=9.9.9.9", "x-tenant: rich"),
		"upstream's headers":         post("/openai/v1/chat/completions", "hidden", chatOf1000, "x-envoy-original-path: /tool/x", "x-rewrite-url: /tool/x", "x-weir-reservation: 00", "x-weir-decision: admit"),
	}
	for _, path := range []string{
		"/openai/v1/chat/completions", "/tool/../openai/v1/chat/completions", "/tool/%2e%2e/openai/v1/chat/completions", "/openai/v1/models/../chat/completions",
		"/openai/v1/models/..%2fchat/completions", "/openai/v1/models/%252e%252e/chat/completions", "//openai/v1/chat/completions", "/openai//v1//chat/completions",
		"/openai/v1/chat%2fcompletions", `/openai\v1\chat\completions`, `/openai/v1/models\..\chat\completions`, "/openai/v1/chat/completions?x=/v1/models", "http://evil.test/openai/v1/chat/completions",
		"/openai/v1/chat/completions;x=y", "/openai/v1/chat/completions/", "/openai/v1/Chat/Completions", "/openai/v1/models/..;/chat/completions",
	} {
		attacks[path] = post(path, "hidden", chatOf1000)
	}
	for name, text := range attacks {
		statuses, last := raw(t, s.proxy, text)
		if events := s.mock.events("hidden"); len(events) > 0 {
			t.Fatalf("%s: %v, and the provider got %+v", name, statuses, events)
		}
		if len(statuses) == 0 || statuses[len(statuses)-1] == 200 {
			t.Errorf("%s: %v %s", name, statuses, last)
		}
	}
	if statuses, _ := raw(t, s.proxy, post("/tool/x", "alive", "{}")); len(statuses) != 1 || len(s.mock.events("alive")) != 1 {
		t.Errorf("what is in order: %v", statuses)
	}
}

// Who is not trusted has no other name by any header, and none of them leaves.
func TestIdentityForgedInEnvoy(t *testing.T) {
	t.Parallel()
	s := startStack(t, smugglePolicy)
	for name, headers := range map[string][]string{
		"plain": {"x-tenant: rich"}, "in capitals": {"X-TENANT: rich"}, "underscores": {"x_tenant: rich", "x_weir_tenant: rich"},
		"forwarded": {"x-forwarded-for: 9.9.9.9, 9.9.9.9", "x-envoy-external-address: 9.9.9.9", "x-tenant: rich"}, "a list": {"x-tenant: rich, x"},
		"no UTF-8": {"x-tenant: rich\xff"}, "long": {"x-tenant: " + strings.Repeat("r", 50_000)}, "empty": {"x-tenant: ", "x-user:"},
	} {
		tag := strings.ReplaceAll(name, " ", "-")
		text := strings.Replace(post("/tool/x", tag, "{}", headers...), "POST", "GET", 1)
		if statuses, last := raw(t, s.proxy, text); len(statuses) != 1 || statuses[0] >= 500 {
			t.Errorf("%s: %v %s", name, statuses, last)
		}
		for _, e := range s.mock.events(tag) {
			for _, h := range e.Headers {
				if strings.HasPrefix(h, "x-tenant") || strings.HasPrefix(h, "x-user") || strings.Contains(h, "_") || strings.HasPrefix(h, "x-weir") || strings.HasPrefix(h, "x-envoy") {
					t.Errorf("%s: %s has left", name, h)
				}
			}
		}
		text = strings.Replace(post("/.weir/budget", tag, "", headers...), "POST", "GET", 1)
		if statuses, last := raw(t, s.proxy, text); len(statuses) != 1 || statuses[0] != 200 || !strings.Contains(last, `"tenant":"unknown"`) {
			t.Errorf("%s: %v %s", name, statuses, last)
		}
	}
	for _, twice := range []string{"x-tenant: a\r\nx-tenant: a", "x-tenant: a\r\nX-Tenant: b"} {
		if statuses, last := raw(t, s.proxy, post("/tool/x", "twice", "{}", twice)); len(statuses) != 1 || statuses[0] != 400 {
			t.Errorf("%v %s", statuses, last)
		}
	}
	// Trailers are no headers: HTTP/1.1's do not leave.
	text := "POST /tool/x HTTP/1.1\r\nhost: x\r\nx-mock-tag: trailers@0\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-tenant: rich\r\n\r\n"
	if statuses, last := raw(t, s.proxy, text); len(statuses) != 1 || statuses[0] >= 500 {
		t.Errorf("%v %s", statuses, last)
	}
	for _, e := range s.mock.events("trailers") {
		if strings.Contains(strings.Join(e.Headers, " "), "x-tenant") {
			t.Errorf("a trailer has left as a header: %v", e.Headers)
		}
	}
}
