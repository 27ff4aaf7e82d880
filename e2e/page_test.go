// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pageView is what a page reads of what it is told.
type pageView struct {
	Ready bool
	Local *struct {
		Address, Problem string
		Counters         []struct {
			Name   string
			Labels map[string]string
			Total  float64
			Recent *float64
		}
	}
}

// firstEvent reads what a page is told first.
func firstEvent(t *testing.T, status string) (v pageView) {
	t.Helper()
	readEvent(t, status, &v)
	return v
}

// readEvent reads the same into anything.
func readEvent(t *testing.T, status string, v any) {
	t.Helper()
	resp, err := http.Get("http://" + status + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), v); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

var documentedRow = regexp.MustCompile(`(?m)^\| (weir_[a-z_, ]+) \| E \| ([a-z_, ]*)\|`)

// The page of weir up shows what the real Envoy counts: who is refused and why, who waits by class and how long they did. And what
// Envoy shows of weir is in the reference, with the same labels.
func TestPageShowsEnvoysCounts(t *testing.T) {
	t.Parallel()
	s := startStack(t, waitPolicy, "--workers", "1")
	url, body := "http://"+s.proxy+"/openai/v1/chat/completions", `{"model":"gpt-4o","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { _, _, _ = ask("POST", url, body, "x-priority", "normal") })
	}
	time.Sleep(100 * time.Millisecond)
	_, _, _ = ask("POST", url, body, "x-priority", "hasty", "x-stainless-retry-count", "1")
	wg.Wait()
	total := func(v pageView, name string, labels ...string) (n float64) {
		for _, c := range v.Local.Counters {
			if c.Name == name && (len(labels) == 0 || c.Labels[labels[0]] == labels[1]) {
				n += c.Total
			}
		}
		return n
	}
	eventually(t, 10*time.Second, func() (bool, string) {
		v := firstEvent(t, s.status)
		if v.Local == nil || v.Local.Problem != "" || v.Local.Address != s.admin {
			return false, fmt.Sprintf("%+v", v.Local)
		}
		waited := total(v, "weir_queue_waits_total", "class", "normal")
		return total(v, "weir_requests_total", "reason", "queue_timeout") == 1 && waited >= 3 && waited == total(v, "weir_queued_total", "class", "normal") &&
			total(v, "weir_repeated_requests_total") == 1, fmt.Sprintf("%+v", v.Local.Counters)
	})
	reference, err := os.ReadFile("../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, row := range documentedRow.FindAllStringSubmatch(string(reference), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			labels[name] = strings.FieldsFunc(strings.ReplaceAll(row[2], "weir_", ""), func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	for _, c := range firstEvent(t, s.status).Local.Counters {
		of, ok := labels[c.Name]
		for l := range c.Labels {
			ok = ok && slices.Contains(of, l)
		}
		if !ok {
			t.Errorf("the reference has not %s with %v", c.Name, c.Labels)
		}
	}
}
