// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type observeFunc func([]Observation, Reply) []Observation

// A said is what a made-up provider says, before it is written into headers.
type saidLimit struct {
	limit, remaining, reset int64
	dim                     Dimension
	coarse                  int64 // ns by which the form rounds
}

// writeReset writes a wait in one of the forms that providers use, and by how much the form rounds it up.
func writeReset(t *rapid.T, ns, now int64) (string, int64) {
	at := time.Unix(0, now+ns).UTC()
	ceil := func(unit int64) time.Time { return time.Unix(0, (now+ns+unit-1)/unit*unit).UTC() }
	switch rapid.IntRange(0, 6).Draw(t, "form") {
	case 0:
		return time.Duration(ns).String(), 0
	case 1:
		return strconv.FormatInt((ns+second-1)/second, 10), second
	case 2:
		return fmt.Sprintf("%d.%09d", ns/second, ns%second), 0
	case 3:
		return at.Format(time.RFC3339Nano), 0
	case 4:
		return strconv.FormatInt(ceil(second).Unix(), 10), second
	case 5:
		return strconv.FormatInt(ceil(1e6).UnixMilli(), 10), 1e6
	}
	return ceil(second).Format("Mon, 02 Jan 2006 15:04:05 GMT"), second
}

func drawSaid(t *rapid.T) (saidLimit, Reply) {
	s := saidLimit{limit: rapid.Int64Range(1, 1e9).Draw(t, "limit"), reset: rapid.Int64Range(0, 20*day).Draw(t, "reset")}
	s.remaining = rapid.Int64Range(0, s.limit).Draw(t, "remaining")
	skew := rapid.Int64Range(-hour, hour).Draw(t, "skew") // of our clock
	r := Reply{Status: 200, Wall: newYear + skew, Headers: headers{{"Date", "Tue, 01 Jan 2030 00:00:00 GMT"}}}
	reset, coarse := writeReset(t, s.reset, newYear)
	s.coarse = coarse
	quantity := rapid.SampledFrom([]Quantity{Requests, Tokens, InputTokens, OutputTokens}).Draw(t, "quantity")
	words := strings.ReplaceAll(quantity.String(), "_", "-")
	add := func(name, value string) { r.Headers = append(r.Headers, [2]string{name, value}) }
	switch rapid.IntRange(0, 2).Draw(t, "family") {
	case 0:
		s.dim = Dimension{quantity, 0}
		add("x-ratelimit-limit-"+words, fmt.Sprint(s.limit))
		add("X-RateLimit-Remaining-"+words, fmt.Sprint(s.remaining))
		add("x-ratelimit-reset-"+words, reset)
	case 1:
		s.dim = Dimension{quantity, minute}
		add("anthropic-ratelimit-"+words+"-limit", fmt.Sprint(s.limit))
		add("anthropic-ratelimit-"+words+"-remaining", fmt.Sprint(s.remaining))
		add("anthropic-ratelimit-"+words+"-reset", reset)
	case 2:
		s.dim, s.coarse = Dimension{quantity, hour}, second
		add("RateLimit-Policy", fmt.Sprintf(`"a";q=1;w=1, "b";q=%d;w=3600;acme-unit="%s"`, s.limit, words))
		add("RateLimit", fmt.Sprintf(`"b";r=%d;t=%d`, s.remaining, (s.reset+second-1)/second))
	}
	return s, r
}

// P24: what a provider says is read as it was meant, whatever the form: never less of a wait, never more left than there is.
func readsWhatWasMeant(t *rapid.T, observe observeFunc) error {
	s, r := drawSaid(t)
	for _, o := range observe(nil, r) {
		if o.Dimension != s.dim {
			continue
		}
		if o.Limit != s.limit || o.Remaining != s.remaining || o.Reset < s.reset || o.Reset > s.reset+s.coarse {
			return fmt.Errorf("%v is read as %+v: reset should be %d to %d", r.Headers, o, s.reset, s.reset+s.coarse)
		}
		return nil
	}
	return fmt.Errorf("%v: %v not found", r.Headers, s.dim)
}

var fragments = []string{"limit", "remaining", "reset", "-", "requests", "tokens", "x-ratelimit-", "anthropic-ratelimit-", "ratelimit", "-policy", "unified", "5h", "status",
	"1", "0", "-1", "99999999999999999999", "1e400", "NaN", "inf", ".", "s", "ms", "h", "d", "9223372036854775807", `"`, ";", "=", ",", "q", "r", "t", "w", " ", ":", "?1", "(", "é", "\x00",
	"2030-01-01T00:00:00Z", "Tue, 01 Jan 2030 00:00:00 GMT", "1893456180", "rejected", "retry-after", "retry-after-ms", "date", "0.000000000001"}

func drawJunk(t *rapid.T, what string) string {
	n := rapid.IntRange(0, 8).Draw(t, what)
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(fragments), n, n).Draw(t, what), "")
}

// P24: whatever the headers are, nothing is negative, no wait longer than MaxWait, no more left than the limit.
func staysInBounds(t *rapid.T, observe observeFunc) error {
	r := Reply{Status: rapid.SampledFrom([]int{200, 429, 503}).Draw(t, "status"), Wall: rapid.Int64().Draw(t, "wall")}
	for range rapid.IntRange(0, 8).Draw(t, "headers") {
		name := rapid.OneOf(rapid.Just("x-ratelimit-remaining-tokens"), rapid.Just("x-ratelimit-reset"), rapid.Just("ratelimit"), rapid.Custom(func(t *rapid.T) string { return drawJunk(t, "name") })).Draw(t, "name")
		r.Headers = append(r.Headers, [2]string{name, drawJunk(t, "value")})
	}
	return inBounds(r, observe(nil, r))
}

func inBounds(r Reply, seen []Observation) error {
	for _, o := range seen {
		if o.Limit < -1 || o.Remaining < -1 || o.Reset < -1 || o.Reset > MaxWait || o.Limit >= 0 && o.Remaining > o.Limit || o.Dimension.Window < 0 {
			return fmt.Errorf("%q: %+v", r.Headers, o)
		}
		if o.Limit < 0 && o.Remaining < 0 && o.Reset < 0 && !o.Rejected {
			return fmt.Errorf("%q: says nothing: %+v", r.Headers, o)
		}
	}
	v := Classify(r)
	if v.Wait < 0 || v.Wait > MaxWait || v.Wait > 0 && !v.Told || v.Class == OK && v != (Verdict{}) {
		return fmt.Errorf("%q: %+v", r.Headers, v)
	}
	if wait, told := r.retryAfter(); told && (!v.Told || v.Wait < wait) && v.Class != OK && v.Class != ClientError {
		return fmt.Errorf("%q: asked to wait %d, %+v", r.Headers, wait, v)
	}
	return nil
}

func TestHeadersAreReadAsMeant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := readsWhatWasMeant(t, Observe); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHeadersStayInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := staysInBounds(t, Observe); err != nil {
			t.Fatal(err)
		}
	})
}

// Planted faults, all seen in the field: numbers parsed by prefix, our clock for the provider's, waits rounded down, a
// remaining of -1 believed, waits without a bound.
func TestHeaderFaultsAreFound(t *testing.T) {
	each := func(r Reply, change func(*[2]string)) Reply {
		r.Headers = append(headers{}, r.Headers...)
		for i := range r.Headers {
			change(&r.Headers[i])
		}
		return r
	}
	after := func(change func(*Observation)) observeFunc {
		return func(seen []Observation, r Reply) []Observation {
			seen = Observe(seen, r)
			for i := range seen {
				change(&seen[i])
			}
			return seen
		}
	}
	meant := map[string]observeFunc{
		"prefix": func(seen []Observation, r Reply) []Observation {
			return Observe(seen, each(r, func(h *[2]string) {
				if strings.Contains(h[0], "reset") {
					h[1] = h[1][:max(1, len(h[1])-len(strings.TrimLeft(h[1], "0123456789")))]
				}
			}))
		},
		"our clock": func(seen []Observation, r Reply) []Observation {
			r.Headers = r.Headers[1:]
			return Observe(seen, r)
		},
		"rounded down": after(func(o *Observation) { o.Reset -= o.Reset % second }),
	}
	bounds := map[string]observeFunc{
		"negative":  after(func(o *Observation) { o.Remaining-- }),
		"unbounded": after(func(o *Observation) { o.Reset *= 2 }),
	}
	for name, f := range meant {
		if !convicted(t, func(t *rapid.T) error { return readsWhatWasMeant(t, f) }) {
			t.Errorf("%s: not found", name)
		}
	}
	for name, f := range bounds {
		if !convicted(t, func(t *rapid.T) error { return staysInBounds(t, f) }) {
			t.Errorf("%s: not found", name)
		}
	}
}
