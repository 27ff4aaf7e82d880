// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A call is one request that a caller makes.
type call struct {
	tenant string // or tenant/user
	body   []byte
}

// userCall is one by the user of a number, of 64 tenants.
func userCall(i int, body []byte) call { return call{fmt.Sprintf("t%d/u%d", i%64, i), body} }

// An answer is what came of it.
type answer struct {
	status       int
	header       http.Header
	body         string          // of a refusal
	total, first time.Duration   // until the last byte, and the first
	chunks       []time.Duration // how long each took from the provider
}

func newClient(connections int) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: connections, DisableCompression: true}}
}

func chat(s script, maxTokens int, stream bool, text string) []byte {
	options := ""
	if stream {
		options = `"stream":true,"stream_options":{"include_usage":true},`
	}
	quoted, _ := json.Marshal(s.String() + " " + text)
	return fmt.Appendf(nil, `{"model":"gpt-4o",%s"max_tokens":%d,"messages":[{"role":"user","content":%s}]}`, options, maxTokens, quoted)
}

// prose is about n bytes of English.
func prose(n int) string {
	const sentence = "What is the weather in Lisbon today, and should I take an umbrella with me? "
	return strings.Repeat(sentence, n/len(sentence)+1)[:n]
}

// usualChat is a chat of 2 KB.
func usualChat() []byte {
	return chat(script{tag: "perf", prompt: 100, completion: 100}, 100, false, prose(2<<10))
}

// sendOK is send where all but a full answer is an error.
func sendOK(ctx context.Context, c *http.Client, addr string, q call) (answer, error) {
	a, err := send(ctx, c, addr, q)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("answered %d %s", a.status, a.body)
	}
	return a, err
}

func send(ctx context.Context, c *http.Client, addr string, q call) (a answer, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(q.body))
	if err != nil {
		return a, err
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("authorization", "Bearer "+q.tenant)
	tenant, user, _ := strings.Cut(q.tenant, "/")
	r.Header.Set("x-tenant", tenant)
	r.Header.Set("x-user", cmp.Or(user, "ada"))
	r.Header.Set("x-tool", "weather")
	started := time.Now()
	resp, err := c.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	if strings.HasPrefix(resp.Header.Get("content-type"), "text/event-stream") {
		err = a.readStream(resp.Body, started)
	} else {
		var b []byte
		b, err = io.ReadAll(resp.Body)
		if a.status != http.StatusOK {
			a.body = string(b)
		}
	}
	a.total = time.Since(started)
	return a, err
}

// readStream compares when a chunk comes with when it was sent, which its text says.
func (a *answer) readStream(body io.Reader, started time.Time) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if a.first == 0 {
			a.first = time.Since(started)
		}
		_, rest, found := bytes.Cut(lines.Bytes(), []byte(`"@`))
		if !found {
			continue
		}
		sent, _, _ := bytes.Cut(rest, []byte(" "))
		ns, err := strconv.ParseInt(string(sent), 10, 64)
		if err != nil {
			return fmt.Errorf("a chunk without its time: %w", err)
		}
		a.chunks = append(a.chunks, time.Duration(time.Now().UnixNano()-ns))
	}
	return lines.Err()
}

// inputTokens counts a request's input exactly, with OpenAI's vocabulary.
func (b *bench) inputTokens(body []byte) (int, error) {
	file := filepath.Join(b.dir, randomName()+".json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return 0, err
	}
	defer os.Remove(file)
	out, err := exec.Command(filepath.Join(b.root, "bin/weir"), "estimate", file).Output()
	if err != nil {
		return 0, fmt.Errorf("weir estimate: %w", err)
	}
	var e struct {
		Input int    `json:"input_tokens"`
		How   string `json:"how"`
	}
	if err := json.Unmarshal(out, &e); err != nil || e.How != "exact" {
		return 0, fmt.Errorf("weir estimate says %s", out)
	}
	return e.Input, nil
}

// ledger is what came through to the provider with a tag, in order.
func (b *bench) ledger(tag string) (entries []entry, err error) {
	r, err := http.Get("http://" + b.provider + "/ledger?tag=" + tag)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	return entries, json.NewDecoder(r.Body).Decode(&entries)
}
