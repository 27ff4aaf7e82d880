// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A script says what the provider is to do with one request. It stands at the beginning of the message's text, for not every
// peer passes headers on.
type script struct {
	tag                string // whose ledger counts it
	prompt, completion int
	delay, gap         time.Duration // before the answer, and between chunks
	chunks             int
}

func (s script) String() string {
	return fmt.Sprintf("[bench %s %d %d %d %d %d]", s.tag, s.prompt, s.completion, s.delay.Microseconds(), s.gap.Microseconds(), s.chunks)
}

func parseScript(body []byte) (s script) {
	_, rest, _ := bytes.Cut(body, []byte("[bench "))
	text, _, _ := bytes.Cut(rest[:min(len(rest), 200)], []byte("]"))
	f := strings.Fields(string(text))
	if len(f) != 6 {
		return script{prompt: 100, completion: 100, chunks: 1}
	}
	n := make([]int, len(f))
	for i := 1; i < len(f); i++ {
		n[i], _ = strconv.Atoi(f[i])
	}
	return script{f[0], n[1], n[2], time.Duration(n[3]) * time.Microsecond, time.Duration(n[4]) * time.Microsecond, n[5]}
}

// An entry is one request that came through to the provider.
type entry struct {
	At     int64 `json:"at"` // ms since 1970
	Tokens int   `json:"tokens"`
}

// An upstream is an OpenAI-compatible provider without limits, which writes down what reaches it.
type upstream struct {
	mu     sync.Mutex
	ledger map[string][]entry
}

func serveUpstream(l net.Listener) error {
	u := &upstream{ledger: map[string][]entry{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/ledger", func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		defer u.mu.Unlock()
		_ = json.NewEncoder(w).Encode(u.ledger[r.URL.Query().Get("tag")])
	})
	mux.HandleFunc("/", u.chat)
	return http.Serve(l, mux)
}

func (u *upstream) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s := parseScript(body)
	if s.tag != "" && s.tag != "perf" {
		u.mu.Lock()
		u.ledger[s.tag] = append(u.ledger[s.tag], entry{time.Now().UnixMilli(), s.prompt + s.completion})
		u.mu.Unlock()
	}
	time.Sleep(s.delay)
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, s.prompt, s.completion, s.prompt+s.completion)
	if bytes.Contains(body, []byte(`"stream":true`)) || bytes.Contains(body, []byte(`"stream": true`)) {
		s.stream(w, usage)
		return
	}
	w.Header().Set("content-type", "application/json")
	fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],%s}`,
		strings.Repeat("word ", 60), usage)
}

// stream writes chunks whose text is the time at which they were sent, in ns.
func (s script) stream(w http.ResponseWriter, usage string) {
	w.Header().Set("content-type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	const head = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[`
	for i := range s.chunks {
		if i > 0 {
			time.Sleep(s.gap)
		}
		fmt.Fprintf(w, head+`{"index":0,"delta":{"content":"@%d "},"finish_reason":null}]}`+"\n\n", time.Now().UnixNano())
		if flush() != nil {
			return
		}
	}
	fmt.Fprintf(w, head+`{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+head+`],%s}`+"\n\ndata: [DONE]\n\n", usage)
}
