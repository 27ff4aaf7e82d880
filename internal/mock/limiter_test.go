// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// arrival is one step of a property test.
type arrival struct {
	gap     time.Duration
	cost    int64
	settle  int // settle the call that many arrivals back; -1 none
	percent int64
}

func genArrivals() *rapid.Generator[[]arrival] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) arrival {
		return arrival{
			// Odd nanoseconds, long pauses, and exactly the window, where edges are.
			gap: time.Duration(rapid.OneOf(
				rapid.Int64Range(0, 50), rapid.Int64Range(0, int64(time.Second)),
				rapid.Just(int64(10*time.Second)), rapid.Int64Range(0, int64(time.Hour)),
			).Draw(t, "gap")),
			cost:    rapid.Int64Range(0, 120).Draw(t, "cost"),
			settle:  rapid.IntRange(-1, 5).Draw(t, "settle"),
			percent: rapid.Int64Range(0, 100).Draw(t, "percent"),
		}
	}), 1, 80)
}

// naiveSliding keeps everything and adds up at every question.
type naiveSliding struct {
	at, n []int64
}

func (s *naiveSliding) sum(now, window int64) (n int64) {
	for i := range s.at {
		if s.at[i] > now-window {
			n += s.n[i]
		}
	}
	return n
}

// The sliding limit agrees with its naive twin on every decision and wait, and
// what it admitted is within the limit in any window.
func TestSlidingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lim := limits{rpm: newRate(5, 10*time.Second, 0), tpm: newRate(100, 10*time.Second, 0)}
		l, now := newLimiter(ModeSliding), int64(0)
		var req, tok naiveSliding
		var tickets []ticket
		var events []Event
		for _, a := range genArrivals().Draw(t, "arrivals") {
			now += int64(a.gap)
			v := l.take(func() int64 { return now }, lim, a.cost)
			want := req.sum(now, lim.rpm.window)+1 <= 5 && tok.sum(now, lim.tpm.window)+a.cost <= 100
			if v.ok != want {
				t.Fatalf("at %d cost %d: ok %v, twin %v", now, a.cost, v.ok, want)
			}
			if !v.ok && v.wait != never {
				later := now + int64(v.wait)
				fits := func(at int64) bool {
					return req.sum(at, lim.rpm.window)+1 <= 5 && tok.sum(at, lim.tpm.window)+a.cost <= 100
				}
				if !fits(later) || fits(later-1) {
					t.Fatalf("at %d cost %d: wait %v is not exact", now, a.cost, v.wait)
				}
			}
			if v.ok {
				req.at, req.n = append(req.at, now), append(req.n, 1)
				tok.at, tok.n = append(tok.at, now), append(tok.n, a.cost)
				tickets = append(tickets, v.ticket)
				events = append(events, Event{At: now, Input: a.cost, Outcome: Admitted})
			}
			if i := len(tickets) - 1 - a.settle; a.settle >= 0 && i >= 0 {
				actual := tickets[i].tokens * a.percent / 100
				if actual < tok.n[i] { // each call settles once, downwards
					tickets[i].settle(func() int64 { return now }, lim, actual)
					tickets[i].tokens, tok.n[i], events[i].Input = actual, actual, actual
				}
			}
		}
		if n := MaxInWindow(events, 10*time.Second); n > 100 {
			t.Fatalf("%d tokens in a window of 100", n)
		}
		if n := MaxRequestsInWindow(events, 10*time.Second, nil); n > 5 {
			t.Fatalf("%d requests in a window of 5", n)
		}
	})
}

// The bucket agrees with a twin in exact fractions.
func TestBucketIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 200).Draw(t, "limit")
		r := newRate(limit, 7*time.Second, time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "burst")))
		lim := limits{tpm: r}
		l, now := newLimiter(ModeBucket), int64(0)
		level, capacity := big.NewRat(r.capacity, 1), big.NewRat(r.capacity, 1)
		for _, a := range genArrivals().Draw(t, "arrivals") {
			now += int64(a.gap)
			level.Add(level, big.NewRat(int64(a.gap), 1).Mul(big.NewRat(int64(a.gap), 1), big.NewRat(limit, r.window)))
			if level.Cmp(capacity) > 0 {
				level.Set(capacity)
			}
			cost := big.NewRat(a.cost, 1)
			v := l.take(func() int64 { return now }, lim, a.cost)
			if want := level.Cmp(cost) >= 0; v.ok != want {
				t.Fatalf("at %d cost %d level %v: ok %v", now, a.cost, level, v.ok)
			}
			if !v.ok && v.wait != never {
				checkBucketWait(t, level, cost, big.NewRat(limit, r.window), v.wait)
			}
			if v.ok {
				level.Sub(level, cost)
			}
			if v.ok && a.settle == 0 { // also upwards: the level may become negative
				actual := a.cost * a.percent / 50
				v.ticket.settle(func() int64 { return now }, lim, actual)
				level.Sub(level, big.NewRat(actual-a.cost, 1))
				if level.Cmp(capacity) > 0 {
					level.Set(capacity)
				}
			}
		}
	})
}

// checkBucketWait wants the wait to be the first nanosecond at which cost fits.
func checkBucketWait(t *rapid.T, level, cost, perNano *big.Rat, wait time.Duration) {
	at := func(d int64) *big.Rat {
		grown := new(big.Rat).Mul(perNano, big.NewRat(d, 1))
		return grown.Add(grown, level)
	}
	if at(int64(wait)).Cmp(cost) < 0 || at(int64(wait)-1).Cmp(cost) >= 0 {
		t.Fatalf("level %v cost %v: wait %v is not exact", level, cost, wait)
	}
}

func TestRefusedSpendsNothing(t *testing.T) {
	for _, mode := range []Mode{ModeBucket, ModeSliding} {
		s, clock := newMock(t, Config{RPM: 2, TPM: 100, Mode: mode})
		wantStatus(t, chat(s, "99"), 200)
		wantStatus(t, chat(s, "1"), 429) // tokens; must not use up the second request
		clock.add(time.Minute)
		wantStatus(t, chat(s, "49"), 200)
		wantStatus(t, chat(s, "49"), 200)
		if w := chat(s, "1"); w.Code != 429 || decode(t, w.Body.Bytes())["error"].(map[string]any)["type"] != "requests" {
			t.Errorf("%s: %d %s", mode, w.Code, w.Body)
		}
	}
}

func TestClockBackwards(t *testing.T) {
	for _, mode := range []Mode{ModeBucket, ModeSliding} {
		s, clock := newMock(t, Config{RPM: 1, Mode: mode})
		wantStatus(t, chat(s, "1"), 200)
		clock.add(-time.Hour)
		wantStatus(t, chat(s, "1"), 429)
		clock.add(time.Hour + time.Minute)
		wantStatus(t, chat(s, "1"), 200)
	}
}

func TestLimitsArePerModelAndPerKey(t *testing.T) {
	s, _ := newMock(t, Config{RPM: 1})
	wantStatus(t, chat(s, "1", "Authorization: Bearer a"), 200)
	wantStatus(t, chat(s, "1", "Authorization: Bearer b"), 429)
	wantStatus(t, do(s, "POST", "/v1/embeddings", `{"model":"other","input":"x"}`), 200)
	s, _ = newMock(t, Config{RPM: 1, PerKey: true})
	wantStatus(t, chat(s, "1", "Authorization: Bearer a"), 200)
	wantStatus(t, chat(s, "1", "Authorization: Bearer b"), 200)
	wantStatus(t, chat(s, "1", "X-Api-Key: a"), 429)
}

func TestSettleGivesBack(t *testing.T) {
	for _, mode := range []Mode{ModeBucket, ModeSliding} {
		s, _ := newMock(t, Config{TPM: 1000, Mode: mode, Usage: Usage{Fraction: 0.01}})
		for range 5 { // 901 reserved, 10 used
			wantStatus(t, chat(s, "900"), 200)
		}
		if st := s.Stats(); st.Reserved != 5*901 || st.OutputTokens != 5*9 {
			t.Errorf("%s: %+v", mode, st.Counts)
		}
	}
}

func TestBurst(t *testing.T) {
	s, clock := newMock(t, Config{RPM: 600, Burst: time.Second})
	for range 10 {
		wantStatus(t, chat(s, "1"), 200)
	}
	wantStatus(t, chat(s, "1"), 429)
	clock.add(100 * time.Millisecond)
	wantStatus(t, chat(s, "1"), 200)
}
