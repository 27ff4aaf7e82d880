// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A stack is weir up, with a mock provider of its own behind it.
type stack struct {
	*process
	policy string // file
	proxy  string // host:port
	status string
	admin  string
	mock   *mockProvider
}

// A mockProvider is weir mock.
type mockProvider struct {
	*process
	addr string
}

func startMock(t testing.TB, args ...string) *mockProvider {
	t.Helper()
	m := &mockProvider{process: start(t, append([]string{"mock", "--listen", "127.0.0.1:0"}, args...)...)}
	m.addr = m.find(`^mock provider on http://(\S+),`)
	return m
}

// startStack runs weir up with a policy in which MOCK stands for the mock provider's address.
func startStack(t testing.TB, policy string, args ...string) *stack {
	t.Helper()
	return startStackOn(t, startMock(t), policy, args...)
}

func startStackOn(t testing.TB, mock *mockProvider, policy string, args ...string) *stack {
	t.Helper()
	s := &stack{mock: mock}
	s.policy = writeFile(t, "policy.yaml", s.fill(policy))
	s.process = start(t, append([]string{"up", "--policy", s.policy, "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0", "--workers", "2"}, args...)...)
	s.proxy = s.find(`^  requests  http://(\S+)$`)
	s.status = s.find(`^  status    http://(\S+)$`)
	s.admin = s.find(`^  envoy     http://(\S+)$`)
	return s
}

func (s *stack) fill(policy string) string { return strings.ReplaceAll(policy, "MOCK", s.mock.addr) }

// change gives the stack another policy, and waits until Envoy has acknowledged it.
func (s *stack) change(policy string) {
	s.t.Helper()
	before := s.version()
	replaceFile(s.t, s.policy, s.fill(policy))
	eventually(s.t, 10*time.Second, func() (bool, string) {
		st := s.statusPage()
		if len(st.Nodes) != 1 {
			return false, "no node"
		}
		return st.Policy.Version != before && st.Nodes[0].Policy == st.Policy.Version, fmt.Sprintf("%+v", st)
	})
	time.Sleep(50 * time.Millisecond) // acknowledged by the main thread; the workers follow
}

// A statusPage is the part of /api/status that tests look at.
type statusPage struct {
	Policy struct {
		Version string `json:"version"`
	} `json:"policy"`
	Problem *struct {
		Message string `json:"message"`
	} `json:"problem"`
	Nodes []struct {
		ID     string `json:"id"`
		Policy string `json:"policy"` // that it has acknowledged
		Types  []struct {
			Name  string `json:"name"`
			Sent  string `json:"sent"`
			Acked string `json:"acked"`
			NACK  *struct {
				Message string `json:"message"`
			} `json:"nack"`
		} `json:"types"`
	} `json:"nodes"`
}

func (s *stack) statusPage() (page statusPage) {
	s.t.Helper()
	return readStatus(s.t, s.status)
}

func readStatus(t testing.TB, addr string) (page statusPage) {
	t.Helper()
	_, body := get(t, "http://"+addr+"/api/status")
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return page
}

func (s *stack) version() string { return s.statusPage().Policy.Version }

// An event is one call as the mock provider saw it.
type event struct {
	At        int64             `json:"at"`
	Sent      int64             // when the test sent it, unix ns; 0 if its tag does not say
	End       int64             `json:"end"`
	Outcome   string            `json:"outcome"`
	Tag       string            `json:"tag"`
	Method    string            `json:"method"`
	Path      string            `json:"path"`
	Model     string            `json:"model"`
	Input     int64             `json:"input"`
	Output    int64             `json:"output"`
	Status    int               `json:"status"`
	Aborted   bool              `json:"aborted"`
	Headers   []string          `json:"headers"`
	Watched   map[string]string `json:"watched"`
	BodyBytes int64             `json:"body_bytes"`
	BodyHash  string            `json:"body_sha256"`
}

// events gives the calls with a tag, or all, in the order of their arrival.
func (m *mockProvider) events(tag string) (list []event) {
	m.t.Helper()
	_, body := get(m.t, "http://"+m.addr+"/stats?events=1")
	var stats struct{ Events []event }
	if err := json.Unmarshal([]byte(body), &stats); err != nil {
		m.t.Fatalf("%v: %.300s", err, body)
	}
	for _, e := range stats.Events {
		name, sent, _ := strings.Cut(e.Tag, "@")
		if name == tag || tag == "" {
			e.Sent, _ = strconv.ParseInt(sent, 10, 64)
			list = append(list, e)
		}
	}
	return list
}

// A call is a chat request in a test.
type call struct {
	tenant  string
	text    string // hi if empty
	output  int    // max_tokens
	input   int    // tokens that the mock says the prompt has; 0: what it counts itself
	stream  bool
	headers map[string]string
}

func (c call) request(proxy string) *http.Request {
	text := c.text
	if text == "" {
		text = "hi"
	}
	body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":%q}]}`, c.output, c.stream, text)
	r, err := http.NewRequest(http.MethodPost, "http://"+proxy+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-tenant", c.tenant)
	r.Header.Set("x-mock-tag", fmt.Sprintf("%s@%d", c.tenant, time.Now().UnixNano()))
	if c.input > 0 {
		r.Header.Set("x-mock-input-tokens", fmt.Sprint(c.input))
	}
	for k, v := range c.headers {
		r.Header.Set(k, v)
	}
	return r
}

// inputOfHi is what "hi" costs as a message.
const inputOfHi = 8
