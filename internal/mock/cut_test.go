// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCuts(t *testing.T) {
	rows := []struct {
		body, cut string
		output    int64
		outcome   Outcome
	}{
		{tenTokens, "headers", 0, Failed},
		{tenTokens, "middle", 10, Admitted},
		{tenStreamed, "middle", 5, Admitted},
		{strings.Replace(tenStreamed, "10", "0", 1), "middle", 128, Admitted},
	}
	eachProtocol(t, func(t *testing.T, h2 bool) {
		s, url, client := serveMock(t, Config{}, h2)
		for i, row := range rows {
			resp, err := post(client, url, row.body, "X-Mock-Cut: "+row.cut)
			if (err == nil) != (row.cut == "middle") {
				t.Fatalf("%d: %v", i, err)
			}
			if err == nil {
				answer, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err == nil || len(answer) == 0 {
					t.Errorf("%d: %d bytes, %v", i, len(answer), err)
				}
			}
			e := closedEvent(t, s, i+1)
			if !e.Aborted || e.Output != row.output || e.Outcome != row.outcome {
				t.Errorf("%d: %+v", i, e)
			}
		}
	})
}

func TestResetRule(t *testing.T) {
	rules, _ := ParseFail("reset:1")
	_, url, client := serveMock(t, Config{Fail: rules}, false)
	if _, err := post(client, url, tenTokens); err == nil {
		t.Error("the connection held")
	}
}

// A caller that leaves in the middle has used what was sent, and gets the rest of
// its reservation back.
func TestCallerLeaves(t *testing.T) {
	eachProtocol(t, func(t *testing.T, h2 bool) {
		s, url, client := serveMock(t, Config{TPM: 10, Mode: ModeSliding}, h2)
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(tenStreamed))
		r.Header.Set("X-Mock-Chunks", "10")
		r.Header.Set("X-Mock-Chunk-Delay", "1m")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		line := bufio.NewReader(resp.Body)
		for text := ""; !strings.Contains(text, "word"); {
			if text, err = line.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if e := closedEvent(t, s, 1); !e.Aborted || e.Output != 1 {
			t.Errorf("%+v", e)
		}
		w := chat(s, "8", "X-Mock-Input-Tokens: 1")
		wantStatus(t, w, 200)
	})
}

func TestCallerLeavesBeforeFirstByte(t *testing.T) {
	s, url, client := serveMock(t, Config{}, false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(tenTokens))
	r.Header.Set("X-Mock-Latency", "1m")
	if _, err := client.Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if e := closedEvent(t, s, 1); !e.Aborted || e.Output != 0 {
		t.Errorf("%+v", e)
	}
}
