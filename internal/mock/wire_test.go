// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serveMock listens with a fresh mock; its client speaks HTTP/1.1 or cleartext HTTP/2.
func serveMock(t *testing.T, c Config, h2 bool) (*Server, string, *http.Client) {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ln, srv, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(ln)
	p := new(http.Protocols)
	p.SetHTTP1(!h2)
	p.SetUnencryptedHTTP2(h2)
	tr := &http.Transport{Protocols: p}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		srv.Close()
	})
	return s, "http://" + ln.Addr().String(), &http.Client{Transport: tr}
}

func eachProtocol(t *testing.T, f func(t *testing.T, h2 bool)) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) { f(t, h2) })
	}
}

// closedEvent waits until the newest of n events is complete.
func closedEvent(t *testing.T, s *Server, n int) Event {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if events := s.Events(); len(events) == n && events[n-1].End != 0 {
			return events[n-1]
		}
	}
	t.Fatalf("no %d complete events: %+v", n, s.Events())
	return Event{}
}

// post sends a chat call over the wire.
func post(c *http.Client, url, body string, headers ...string) (*http.Response, error) {
	r, err := http.NewRequest("POST", url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return c.Do(r)
}

const tenTokens = `{"model":"m","max_tokens":10,"messages":[]}`
const tenStreamed = `{"model":"m","max_tokens":10,"stream":true,"messages":[]}`

func TestProtocols(t *testing.T) {
	eachProtocol(t, func(t *testing.T, h2 bool) {
		s, url, client := serveMock(t, Config{}, h2)
		for i, body := range []string{tenTokens, tenStreamed} {
			resp, err := post(client, url, body)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(resp.Body)
			if err != nil || strings.Count(string(answer), "word") != 10 {
				t.Errorf("%v: %s", err, answer)
			}
			e := closedEvent(t, s, i+1)
			if (e.Proto == "HTTP/2.0") != h2 || e.Output != 10 || e.Aborted {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestExpectContinueAndTrailers(t *testing.T) {
	s, url, _ := serveMock(t, Config{}, false)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"+
		"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	in.ReadString('\n')
	fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(tenTokens), tenTokens)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	e := closedEvent(t, s, 1)
	if e.ContentLength != -1 || e.BodyBytes != int64(len(tenTokens)) || e.Headers[len(e.Headers)-1] != "trailer:x-sum" {
		t.Errorf("%+v", e)
	}
}

func TestBodyThatStopsShort(t *testing.T) {
	s, url, _ := serveMock(t, Config{}, false)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
	conn.(*net.TCPConn).CloseWrite()
	defer conn.Close()
	if e := closedEvent(t, s, 1); !e.Aborted || e.Outcome != Failed || e.BodyBytes != 1 {
		t.Errorf("%+v", e)
	}
}

func TestHead(t *testing.T) {
	s, url, client := serveMock(t, Config{}, false)
	for i, path := range []string{"/weather", "/v1/models"} {
		resp, err := client.Head(url + path)
		if err != nil || resp.StatusCode != 200 || resp.ContentLength <= 0 {
			t.Fatalf("%v %v", resp, err)
		}
		if e := closedEvent(t, s, i+1); e.Aborted {
			t.Errorf("%+v", e)
		}
	}
}

func TestListenAndServeEnds(t *testing.T) {
	s, _ := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ListenAndServe(ctx, "127.0.0.1:0"); err != nil {
		t.Error(err)
	}
	if err := s.ListenAndServe(t.Context(), "256.0.0.1:0"); err == nil {
		t.Error("no error for a bad address")
	}
}

// Who has read the end of an answer finds the call complete, without waiting:
// clients stop at the end mark, before the connection says so.
func TestLedgerIsReadyAtTheEndMark(t *testing.T) {
	rows := []struct{ path, body, mark string }{
		{"/chat/completions", tenStreamed, "[DONE]"},
		{"/completions", tenStreamed, "[DONE]"},
		{"/responses", `{"max_output_tokens":10,"stream":true}`, `"response.completed"`},
		{"/messages", tenStreamed, `"message_stop"`},
		{"/chat/completions", `{"max_tokens":10,"n":128}`, `"service_tier"`}, // larger than a write buffer
	}
	for _, row := range rows {
		s, url, client := serveMock(t, Config{}, false)
		for range 30 {
			s.Reset()
			resp, err := client.Post(url+row.path, "application/json", strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(resp.Body)
			for text := ""; !strings.Contains(text, row.mark); {
				if text, err = in.ReadString('\n'); err != nil && err != io.EOF {
					t.Fatal(err)
				}
			}
			if e := lastEvent(t, s); e.End == 0 || e.Output == 0 {
				t.Fatalf("%s: %+v", row.path, e)
			}
			io.Copy(io.Discard, in)
			resp.Body.Close()
		}
	}
}

// padded answers have the wanted length, and stay what they were.
func TestPadding(t *testing.T) {
	_, url, client := serveMock(t, Config{}, false)
	resp, err := post(client, url, tenTokens, "X-Mock-Body-Bytes: 5000000")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || len(answer) != 5_000_000 || resp.ContentLength != 5_000_000 {
		t.Fatalf("%d bytes, %v", len(answer), err)
	}
	if u := decode(t, answer)["usage"].(map[string]any); u["completion_tokens"] != 10.0 {
		t.Errorf("%v", u)
	}
	resp, err = post(client, url, tenStreamed, "X-Mock-Body-Bytes: 100000")
	if err != nil {
		t.Fatal(err)
	}
	answer, err = io.ReadAll(resp.Body)
	if err != nil || len(answer) < 100_000 || !bytes.HasPrefix(answer, []byte(": ")) || !bytes.HasSuffix(answer, []byte("[DONE]\n\n")) {
		t.Errorf("%d bytes, %v", len(answer), err)
	}
}
