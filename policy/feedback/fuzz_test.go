// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"testing"
)

// Whatever a header says: nothing panics, nothing is out of bounds, and what is read twice is the same.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{`"burst";r=50;t=30, "daily";q=9;w=86400;pk=:AA==:`, `10, 10;w=1;name="x", 50;w=60`, "limit=100, remaining=50, reset=30", "?1;r=1", `"a\"b";q=1`, "-1", "6m0s", "rejected"} {
		f.Add("RateLimit", s, "x-ratelimit-reset-tokens", "6m0s", newYear)
		f.Add("x-ratelimit-limit", s, "anthropic-ratelimit-unified-5h-status", s, int64(-1))
	}
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string, wall int64) {
		r := Reply{Status: 429, Headers: headers{{name, value}, {name2, value2}, {"RateLimit-Policy", value}, {"ratelimit", value2}}, Wall: wall}
		if err := inBounds(r, Observe(nil, r)); err != nil {
			t.Fatal(err)
		}
		var l Learner
		for _, f := range l.Take(nil, 0, r, func(Dimension) int64 { return 1 }) {
			if f.To < 0 || f.From < 0 {
				t.Fatalf("%+v", f)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"0", "37", "0.503", "1e400", "-3", "soon", "1m1s", "Tue, 01 Jan 2030 00:01:00 GMT", "2030-01-01T00:00:17Z", "99999999999999999999", "1.9999999999"} {
		f.Add(s, s, "Tue, 01 Jan 2030 00:00:00 GMT", newYear)
	}
	f.Fuzz(func(t *testing.T, after, ms, date string, wall int64) {
		r := Reply{Status: 429, Headers: headers{{"retry-after", after}, {"retry-after-ms", ms}, {"date", date}}, Wall: wall}
		wait, told := r.retryAfter()
		if wait < 0 || wait > MaxWait || !told && wait != 0 {
			t.Fatalf("%d %v", wait, told)
		}
		if n, ok := parseReset(after, wall); ok && (n < 0 || n > MaxWait) {
			t.Fatal(n)
		}
		var g Gate
		if until, _ := g.Close(0, Classify(r), 0); until < 0 || until > MaxWait {
			t.Fatal(until)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, row := range classifyRows {
		f.Add(row.status, []byte(row.body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		v := Classify(Reply{Status: status, Body: body})
		switch {
		case v.Class >= NumClasses || v.Wait < 0 || v.Wait > MaxWait:
			t.Fatalf("%+v", v)
		case status >= 400 && v.Class == OK:
			t.Fatalf("%d is OK", status)
		case v.Class == Exhausted && v.Retry:
			t.Fatalf("%+v is retried", v)
		case v.Dimension.Window < 0 || v.Dimension.Quantity >= numQuantities:
			t.Fatalf("%+v", v)
		}
		// Cut off anywhere it still gives an answer.
		for n := 0; n < len(body); n += 1 + len(body)/16 {
			Classify(Reply{Status: status, Body: body[:n]})
		}
	})
}
