// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// testClock is a clock that tests move.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock {
	return &testClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newMock is a mock on a clock of its own.
func newMock(t testing.TB, c Config) (*Server, *testClock) {
	t.Helper()
	clock := newClock()
	if c.Now == nil {
		c.Now = clock.Now
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s, clock
}

// do sends one request without a network; headers are "name: value".
func do(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// chat is a small chat call of 1 input token and max output tokens.
func chat(s http.Handler, max string, headers ...string) *httptest.ResponseRecorder {
	body := `{"model":"m","max_tokens":` + max + `,"messages":[{"role":"user","content":"hi"}]}`
	return do(s, "POST", "/v1/chat/completions", body, headers...)
}

func wantStatus(t testing.TB, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
	}
}

func decode(t testing.TB, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// lastEvent is the only or the newest event of the ledger.
func lastEvent(t testing.TB, s *Server) Event {
	t.Helper()
	events := s.Events()
	if len(events) == 0 {
		t.Fatal("the ledger is empty")
	}
	return events[len(events)-1]
}
