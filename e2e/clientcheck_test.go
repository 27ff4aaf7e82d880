// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// answerWords is the output that every call asks for, of one word a token.
const answerWords = 20

// check holds a call against what is true of every client; the provider saw it so many times.
func (sc *scenario) check(t *testing.T, r result, seen int, client string) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s: %+v", sc.name, fmt.Sprintf(format, args...), r)
	}
	if len(r.attempts) == 0 || len(r.attempts) > sc.most {
		wrong("at most %d attempts", sc.most)
	}
	if r.said.Seconds > 10 {
		wrong("it has slept")
	}
	admitted := 0
	for i, a := range r.attempts {
		switch {
		case a.status == 0:
			wrong("attempt %d was not answered in time", i)
		case a.reason == "" && a.decision == sc.decision:
			admitted++
		case a.reason != sc.reason:
			wrong("attempt %d was refused", i)
		}
		if i > 0 && !sc.deaf {
			told := r.attempts[i-1]
			if paused := a.at.Sub(told.answered); paused < told.wait || paused > told.wait+2*time.Second {
				wrong("attempt %d came after %v", i, paused)
			}
		}
	}
	if seen != admitted+sc.envoys {
		wrong("the provider saw %d calls, weir let %d through", seen, admitted)
	}
	if r.said.OK {
		sc.checkAnswer(r.said, client, wrong)
	} else if r.said.Status != 0 && !strings.Contains(r.said.Message, "Refused by weir, not by the provider: ") {
		wrong("the error does not say who refused")
	}
}

// checkAnswer holds a client to having got all of an answer, and its usage if it asked for it; only streams of chat
// completions leave it out.
func (sc *scenario) checkAnswer(said said, client string, wrong func(string, ...any)) {
	if said.Text != strings.TrimSpace(strings.Repeat("word ", answerWords)) {
		wrong("the text is not whole")
	}
	if sc.ask.Stream && said.Deltas != answerWords {
		wrong("not every delta came")
	}
	if usage := sc.ask.Usage || !sc.ask.Stream || sc.ask.Responses || client == "anthropic-python"; said.Usage != usage {
		wrong("usage should be there: %v", usage)
	}
}

// hold keeps a call in flight until the function that it gives is called.
func (s *stack) hold(c call) (end func()) {
	tag := c.headers["x-mock-tag"]
	c.headers["x-mock-latency"] = "1m"
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(c.request(s.proxy).WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
	}()
	eventually(s.t, 5*time.Second, func() (bool, string) {
		return len(s.mock.events(tag)) == 1, "the call to be held is not under way"
	})
	return func() { cancel(); <-gone }
}

var requestsTotal = regexp.MustCompile(`(?m)^weir_requests_total\{weir_decision="(\w+)"(?:,weir_reason="(\w+)")?[^}]*\} (\d+)$`)

// checkMetrics holds weir's own count of its decisions against what was seen on the wire.
func checkMetrics(t *testing.T, s *stack, results map[string][]result) {
	want := map[string]int{}
	for _, list := range results {
		for i, r := range list {
			for _, a := range r.attempts {
				want[a.reason]++
			}
			if len(r.attempts) > 0 {
				want[""] += scenarios[i].envoys
			}
			if len(r.attempts) > 0 && (scenarios[i].used || scenarios[i].held) {
				want[""]++
			}
		}
	}
	eventually(t, 5*time.Second, func() (bool, string) {
		_, page := get(t, "http://"+s.admin+"/stats/prometheus?filter=weir_requests_total")
		got := map[string]int{}
		for _, m := range requestsTotal.FindAllStringSubmatch(page, -1) {
			if m[2] != "unknown_prefix" { // those of weir up itself, which asks whether Envoy answers
				n, _ := strconv.Atoi(m[3])
				if m[1] == "degrade" {
					m[2] = "" // it is answered as if it were admitted
				}
				got[m[2]] += n
			}
		}
		return maps.Equal(got, want), fmt.Sprintf("weir counts %v, on the wire were %v", got, want)
	})
}
