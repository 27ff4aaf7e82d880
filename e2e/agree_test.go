// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const agreePolicy = `
apiVersion: weir/v1
trust: [all]
providers: {openai: {upstream: "http://MOCK", models: {"*": {tpm: 1_000_000}}}}
limits:
  tenant:
    calls: {rpm: 2, burst: 100%}
    small: {tpm: 1000, burst: 100%}
    flight: {in_flight: 1}
    patient: {rpm: 1, burst: 100%}
    default: {tpm: 100_000}
  user: {users/ann: {tpm: 1000, burst: 100%}}
  tree: {default: {calls: 2}}
classes:
  interactive: {priority: 1}
  waits: {priority: 0.5, on_limit: queue, wait: 300ms}
log: {admit: off, deny: warn, caller: true}
`

// told is what somebody says of a denial.
type told struct {
	reason, tier, dimension string
	limit                   int64
	wait                    time.Duration // -1: it says none
}

func (a told) agrees(b told) bool {
	a.wait, b.wait = 0, 0
	return a == b
}

// byReply is what a caller reads: in the headers, and in the body.
func byReply(t *testing.T, resp *http.Response) (headers, body told) {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Error struct {
			Message string
			Weir    struct {
				Reason, Tier, Dimension string
				Limit                   int64
				RetryAfterMS            *int64 `json:"retry_after_ms"`
			}
		}
	}
	if err := json.Unmarshal(b, &reply); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	w, h := reply.Error.Weir, resp.Header
	body = told{w.Reason, w.Tier, w.Dimension, w.Limit, -1}
	headers = told{h.Get("x-weir-reason"), h.Get("x-weir-tier"), h.Get("x-weir-dimension"), w.Limit, -1}
	if w.RetryAfterMS != nil {
		body.wait = time.Duration(*w.RetryAfterMS) * time.Millisecond
	}
	if ms, err := strconv.Atoi(h.Get("retry-after-ms")); err == nil {
		headers.wait = time.Duration(ms) * time.Millisecond
	}
	for _, word := range []string{w.Tier, fmt.Sprint(w.Limit)} { // people read them, too
		if !strings.Contains(reply.Error.Message, word) {
			t.Errorf("no %q in %q", word, reply.Error.Message)
		}
	}
	return headers, body
}

var logField = regexp.MustCompile(`(\w+)=("[^"]*"|\S+)`)

// byLog is what the line says of the denial of a request.
func byLog(t *testing.T, file, id string) (d told) {
	t.Helper()
	eventually(t, 15*time.Second, func() (bool, string) {
		b, err := os.ReadFile(file)
		for _, line := range strings.Split(string(b), "\n") {
			f := map[string]string{}
			for _, m := range logField.FindAllStringSubmatch(line, -1) {
				f[m[1]] = strings.Trim(m[2], `"`)
			}
			if f["decision"] == "deny" && f["request_id"] == id {
				limit, _ := strconv.ParseInt(f["limit"], 10, 64)
				d = told{f["reason"], f["tier"], f["dimension"], limit, -1}
				if ms, err := strconv.Atoi(f["wait_ms"]); err == nil {
					d.wait = time.Duration(ms) * time.Millisecond
				}
				return true, ""
			}
		}
		return false, fmt.Sprintf("%v\n%s", err, tail(string(b), 1000))
	})
	return d
}

// byExplain is what weir explain says becomes of a request when the limits are used up, or at once.
func byExplain(t *testing.T, policy, body string, headers map[string]string) told {
	t.Helper()
	args := []string{"explain", "--policy", policy, "--json"}
	for k, v := range headers {
		args = append(args, "-H", k+": "+v)
	}
	_, out, errs := exec1(t, nil, append(args, writeFile(t, "body.json", body))...)
	type outcome struct {
		Reason, Tier, Dimension string
		Limit                   int64
	}
	var e struct {
		Decision outcome
		Then     *outcome
		By       *struct {
			WaitS float64 `json:"wait_s"`
		} `json:"refused_by"`
	}
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	o, wait := e.Decision, time.Duration(-1)
	if e.Then != nil {
		o, wait = *e.Then, time.Duration(e.By.WaitS*float64(time.Second))
	}
	return told{o.Reason, o.Tier, o.Dimension, o.Limit, wait}
}

// A deniedRow is a row of the page.
type deniedRow struct {
	Who, Tenant, Tier, Dimension, Reason, Decision, Class string
	Limit, Recent                                         int64
}

// byPage is what the page says of calls that were denied by a limit: the table for everybody, and the search for one caller.
func byPage(t *testing.T, status, who, class string, search url.Values) told {
	t.Helper()
	find := func(list []deniedRow) (found []told) {
		for _, d := range list {
			if strings.HasPrefix(d.Who, who) && d.Class == class && d.Decision == "deny" && d.Recent > 0 {
				found = append(found, told{d.Reason, d.Tier, d.Dimension, d.Limit, -1})
			}
		}
		return found
	}
	var all []told
	eventually(t, 20*time.Second, func() (bool, string) {
		var v struct{ Denials []deniedRow }
		readEvent(t, status, &v)
		all = find(v.Denials)
		return len(all) == 1, fmt.Sprintf("%s: %+v", who, v.Denials)
	})
	_, text := get(t, "http://"+status+"/api/search?"+search.Encode())
	var s struct{ Denials []deniedRow }
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if one := find(s.Denials); len(one) != 1 || one[0] != all[0] {
		t.Errorf("the search for %v finds %+v, the page has %+v", search, one, all)
	}
	return all[0]
}

// Why a call was refused its caller, the log, weir explain and the page tell alike.
func TestExplanationsAgree(t *testing.T) {
	t.Parallel()
	envoyLog := filepath.Join(t.TempDir(), "envoy.log")
	s := startStack(t, agreePolicy, "--envoy-log", envoyLog)
	for _, row := range []struct {
		tenant, user, tree, class string
		output, admitted          int
		slow                      bool // those that are admitted last
		who                       string
		want                      told
		use                       float64 // that the page shows of the limit
	}{
		{tenant: "calls", output: 5, admitted: 2, who: "tenant calls", want: told{"limit_exceeded", "tenant", "rpm", 2, 0}, use: 2},
		{tenant: "users", user: "ann", output: 600, admitted: 1, who: "user users/ann", want: told{"limit_exceeded", "user", "tpm", 1000, 0}},
		{tenant: "small", output: 5000, who: "tenant small", want: told{"request_too_large", "tenant", "tpm", 1000, -1}},
		{tenant: "flight", output: 5, admitted: 1, slow: true, who: "tenant flight", want: told{"limit_exceeded", "tenant", "in_flight", 1, 0}},
		{tenant: "trees", user: "bob", tree: "t1", output: 5, admitted: 2, who: "tree default #", want: told{"quota_exhausted", "tree", "calls", 2, 0}, use: 2},
		{tenant: "patient", class: "waits", output: 5, admitted: 1, who: "tenant patient", want: told{"queue_timeout", "tenant", "rpm", 1, 0}, use: 1},
	} {
		t.Run(row.want.reason+" "+row.want.tier+" "+row.want.dimension, func(t *testing.T) {
			headers := map[string]string{"x-tenant": row.tenant}
			search := url.Values{"tenant": {row.tenant}}
			for name, value := range map[string]string{"x-user": row.user, "x-request-tree": row.tree, "x-priority": row.class} {
				if value != "" {
					headers[name] = value
				}
			}
			if row.user != "" {
				search.Set("user", row.user)
			}
			if row.tree != "" {
				search.Set("tree", row.tree)
			}
			body := fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"hi"}]}`, row.output)
			ask := func(more ...string) *http.Response {
				r, _ := http.NewRequest(http.MethodPost, "http://"+s.proxy+"/openai/v1/chat/completions", strings.NewReader(body))
				for k, v := range headers {
					r.Header.Set(k, v)
				}
				for i := 0; i < len(more); i += 2 {
					r.Header.Set(more[i], more[i+1])
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return &http.Response{Body: http.NoBody}
				}
				return resp
			}
			var open sync.WaitGroup
			defer open.Wait()
			begin := time.Now()
			for range row.admitted {
				if row.slow {
					open.Go(func() { ask("x-mock-latency", "3s").Body.Close() })
					time.Sleep(500 * time.Millisecond)
				} else {
					ask().Body.Close()
				}
			}
			id := fmt.Sprintf("agree-%s", row.tenant)
			resp := ask("x-request-id", id)
			defer resp.Body.Close()
			took := time.Since(begin)
			inHeaders, inBody := byReply(t, resp)
			inLog := byLog(t, envoyLog, id)
			explained := byExplain(t, s.policy, body, headers)
			shown := byPage(t, s.status, row.who, cmp.Or(row.class, "interactive"), search)
			for what, d := range map[string]told{"headers": inHeaders, "body": inBody, "log": inLog, "explain": explained, "page": shown} {
				if !d.agrees(row.want) {
					t.Errorf("%s: %+v, want %+v", what, d, row.want)
				}
			}
			if row.use > 0 {
				showsUse(t, s.status, row.who, row.want.dimension, row.use, row.want.limit)
			}
			waitsAgree(t, inHeaders.wait, inBody.wait, inLog.wait, explained.wait, took)
		})
	}
}

// showsUse waits until the page shows what is used of a limit, and of how much.
func showsUse(t *testing.T, status, who, dimension string, use float64, limit int64) {
	t.Helper()
	eventually(t, 20*time.Second, func() (bool, string) {
		var v struct {
			Quotas []struct {
				Quota, Dimension, Kind string
				Use                    *float64
				Limit                  int64
			}
		}
		readEvent(t, status, &v)
		for _, q := range v.Quotas {
			if strings.HasPrefix(q.Quota, who) && q.Dimension == dimension && q.Kind == "whole" && q.Use != nil && *q.Use == use && q.Limit == limit {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%s: %+v", who, v.Quotas)
	})
}

// waitsAgree holds the waits against each other. What a caller is told is the exact wait, and up to a fifth or a second more. What
// explain says is that of a caller who asks for everything at once.
func waitsAgree(t *testing.T, headers, body, log, explained, took time.Duration) {
	t.Helper()
	if log < 0 {
		if headers >= 0 || body >= 0 || explained > 0 {
			t.Errorf("waits: headers %v, body %v, log %v, explain %v", headers, body, log, explained)
		}
		return
	}
	most := log + max(log/5, time.Second) + 5*time.Millisecond
	if headers != body || body < log || body > most {
		t.Errorf("waits: headers %v, body %v, log %v", headers, body, log)
	}
	if explained < log-time.Second || explained > log+took+time.Second {
		t.Errorf("waits: explain %v, log %v after %v", explained, log, took)
	}
}
