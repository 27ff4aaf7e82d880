// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestEvent(t *testing.T) {
	s, clock := newMock(t, Config{})
	body := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello wo"}]}`
	w := do(s, "POST", "/v1/chat/completions?x=1", body, "X-Mock-Tag: team", "Authorization: Bearer secret",
		"X-Weir-Tier: t", "X-Tenant-Id: acme", "X-User: u", "X-Usual: no", "X-Mock-Output-Tokens: 3")
	wantStatus(t, w, 200)
	sum := sha256.Sum256([]byte(body))
	got, now := lastEvent(t, s), clock.Now().UnixNano()
	want := Event{
		Seq: 1, At: now, End: now, Outcome: Admitted, Tag: "team", Model: "m", Key: MaskKey("secret"),
		Method: "POST", Path: "/v1/chat/completions", Proto: "HTTP/1.1",
		Input: 2, Output: 3, Reserved: 7, Status: 200,
		Headers: []string{"authorization", "x-mock-output-tokens", "x-mock-tag", "x-tenant-id", "x-user", "x-usual", "x-weir-tier"},
		Watched: map[string]string{"x-weir-tier": "t", "x-tenant-id": "acme", "x-user": "u"},
		// x-usual is not one of the watched headers, although it looks like x-us(er).
		ContentLength: int64(len(body)), BodyBytes: int64(len(body)), BodySHA256: hex.EncodeToString(sum[:]),
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if key := MaskKey("secret"); len(key) != 12 || key == "secret" || MaskKey("") != "anonymous" {
		t.Errorf("masked key %q", key)
	}
}

func TestStats(t *testing.T) {
	s, clock := newMock(t, Config{RPM: 2})
	chat(s, "10", "X-Mock-Tag: a")
	clock.add(time.Second)
	chat(s, "10", "X-Mock-Tag: b")
	chat(s, "10", "X-Mock-Tag: b")
	chat(s, "10", "X-Mock-Status: 500")
	do(s, "GET", "/v1/models", "")
	st := s.Stats()
	want := Counts{Admitted: 2, Refused: 1, Failed: 1, Free: 1, InputTokens: 2, OutputTokens: 20, Reserved: 22}
	if st.Counts != want {
		t.Errorf("total %+v", st.Counts)
	}
	one := Counts{Admitted: 1, InputTokens: 1, OutputTokens: 10, Reserved: 11}
	first := clock.Now().Unix() - 1
	if len(st.Seconds) != 2 || st.Seconds[0] != (Second{T: first, Counts: one}) || st.Seconds[1].T != first+1 || st.Seconds[1].Refused != 1 {
		t.Errorf("seconds %+v", st.Seconds)
	}
	if st.ByTag["a"] != one || st.ByTag["b"].Refused != 1 || st.ByModel["m"].Admitted != 2 || st.ByKey["anonymous"].Failed != 1 {
		t.Errorf("by tag %+v, by model %+v, by key %+v", st.ByTag, st.ByModel, st.ByKey)
	}
	if st.InFlight != 0 || st.Peak != 1 {
		t.Errorf("in flight %d, peak %d", st.InFlight, st.Peak)
	}
}

func TestStatsEndpoint(t *testing.T) {
	s, _ := newMock(t, Config{})
	chat(s, "10")
	chat(s, "10")
	plain := decode(t, do(s, "GET", "/stats", "").Body.Bytes())
	if plain["admitted"] != 2.0 || plain["output_tokens"] != 20.0 || plain["events"] != nil || len(plain["seconds"].([]any)) != 1 {
		t.Errorf("%v", plain)
	}
	full := decode(t, do(s, "GET", "/stats?events=1", "").Body.Bytes())
	events := full["events"].([]any)
	if len(events) != 2 || events[1].(map[string]any)["seq"] != 2.0 || full["admitted"] != 2.0 {
		t.Errorf("%v", full)
	}
	wantStatus(t, do(s, "POST", "/stats", ""), 405)
	wantStatus(t, do(s, "GET", "/reset", ""), 405)
	wantStatus(t, do(s, "POST", "/reset", ""), 200)
	if st := s.Stats(); st.Counts != (Counts{}) || len(st.Seconds)+len(st.ByModel)+len(s.Events()) != 0 {
		t.Errorf("after the reset: %+v", st)
	}
}

func TestResetFillsLimits(t *testing.T) {
	s, _ := newMock(t, Config{RPM: 1})
	wantStatus(t, chat(s, "1"), 200)
	wantStatus(t, chat(s, "1"), 429)
	s.Reset()
	wantStatus(t, chat(s, "1"), 200)
}

// A call that outlives a reset must not appear in, or corrupt, the new ledger.
func TestResetWithCallInFlight(t *testing.T) {
	l := newLedger(2)
	old := l.open(&Event{At: 1, Outcome: Admitted, Reserved: 9})
	l.reset()
	fresh := l.open(&Event{At: 2, Outcome: Admitted, Reserved: 5})
	l.close(&old, 3, 7, true)
	if st := l.stats(); st.InFlight != 1 || st.Aborted != 0 || st.OutputTokens != 0 || st.Reserved != 5 {
		t.Errorf("%+v", st)
	}
	l.close(&fresh, 3, 7, false)
	l.close(&fresh, 3, 7, false)
	if st := l.stats(); st.InFlight != 0 || st.OutputTokens != 7 || st.Peak != 2 {
		t.Errorf("%+v", st)
	}
}

// The last bytes may fail to leave after the call was closed as complete.
func TestAbortedAfterClose(t *testing.T) {
	l := newLedger(2)
	en := l.open(&Event{At: 1, Outcome: Admitted})
	l.close(&en, 3, 7, false)
	for range 2 {
		l.close(&en, 4, 0, true)
	}
	e, st := l.copyEvents()[0], l.stats()
	if !e.Aborted || e.End != 3 || e.Output != 7 || st.Aborted != 1 || st.OutputTokens != 7 || st.InFlight != 0 {
		t.Errorf("%+v %+v", e, st)
	}
}

func TestEventsAreBounded(t *testing.T) {
	s, _ := newMock(t, Config{Events: 3})
	for range 8 {
		chat(s, "1")
	}
	seqs := []uint64{}
	for _, e := range s.Events() {
		seqs = append(seqs, e.Seq)
		if e.End == 0 || e.Output != 1 {
			t.Errorf("not closed: %+v", e)
		}
	}
	if !slices.Equal(seqs, []uint64{6, 7, 8}) {
		t.Errorf("events %v", seqs)
	}
	s, _ = newMock(t, Config{Events: -1})
	chat(s, "1")
	if n := len(s.Events()); n != 0 || s.Stats().Admitted != 1 {
		t.Errorf("%d events", n)
	}
}

func TestSecondsAreBounded(t *testing.T) {
	s, clock := newMock(t, Config{})
	for range keepSeconds + 10 {
		chat(s, "1")
		clock.add(time.Second)
	}
	st := s.Stats()
	if len(st.Seconds) != keepSeconds || st.Seconds[0].T >= st.Seconds[1].T || st.Admitted != keepSeconds+10 {
		t.Errorf("%d seconds", len(st.Seconds))
	}
}

func TestNamesAreBounded(t *testing.T) {
	g := groups{}
	for i := range maxGroups + 5 {
		g.of(fmt.Sprint(i)).add(Counts{Admitted: 1})
	}
	if len(g) != maxGroups+1 || g["(other)"].Admitted != 5 {
		t.Errorf("%d names, %+v", len(g), g["(other)"])
	}
}

// With many callers at once the sliding limit still lets in exactly what fits.
func TestConcurrentCallers(t *testing.T) {
	s, _ := newMock(t, Config{TPM: 1100, Mode: ModeSliding, Now: time.Now})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				chat(s, "10")
				s.Stats()
			}
		})
	}
	wg.Wait()
	st := s.Stats()
	if st.Admitted != 100 || st.Refused != 300 || st.InFlight != 0 {
		t.Errorf("%+v", st.Counts)
	}
	if n := MaxInWindow(s.Events(), time.Minute); n != 1100 {
		t.Errorf("%d tokens in a minute", n)
	}
}
