// SPDX-License-Identifier: Apache-2.0

package feedback

// dimension is which limit refused, as far as codes, quotas and words tell.
func (t *told) dimension() Dimension {
	d := t.quota
	if d.Quantity == Unknown {
		for _, code := range t.codes {
			if q := quantityOfWord(code); q != Unknown {
				d.Quantity = q
			}
		}
	}
	if d.Quantity == Unknown || d.Quantity == Tokens {
		if q := quantityInText(t.message); q != Unknown {
			d.Quantity = q
		}
	}
	if d.Window == 0 {
		d.Window = windowInText(t.message)
	}
	return d
}

// quantityInText finds what a message says was counted, the most special first.
func quantityInText(s string) Quantity {
	switch {
	case containsFold(s, "input token"), containsFold(s, "input_token"), containsFold(s, "(itpm)"):
		return InputTokens
	case containsFold(s, "output token"), containsFold(s, "output_token"), containsFold(s, "(otpm)"):
		return OutputTokens
	case containsFold(s, "concurren"), containsFold(s, "in flight"), containsFold(s, "in-flight"), containsFold(s, "parallel requests"):
		return InFlight
	case containsFold(s, "token rate limit"), containsFold(s, "tokens per"), containsFold(s, "tokens_per"), containsFold(s, "(tpm)"),
		containsFold(s, "(tpd)"), containsFold(s, "too many tokens"):
		return Tokens
	case containsFold(s, "call rate limit"), containsFold(s, "requests per"), containsFold(s, "requests_per"), containsFold(s, "(rpm)"),
		containsFold(s, "(rpd)"), containsFold(s, "too many requests"), containsFold(s, "calls /"), containsFold(s, "requests rate"):
		return Requests
	case containsFold(s, "token limit"), containsFold(s, "tokens"):
		return Tokens
	}
	return Unknown
}

// windowInText finds the window that a message names, the longest first; 0 if it names none.
func windowInText(s string) int64 {
	switch {
	case containsFold(s, "per month"), containsFold(s, "/ month"), containsFold(s, "/month"), containsFold(s, "monthly"):
		return month
	case containsFold(s, "per week"), containsFold(s, "weekly"):
		return 7 * day
	case containsFold(s, "per day"), containsFold(s, "per_day"), containsFold(s, "/day"), containsFold(s, "daily"), containsFold(s, "(rpd)"),
		containsFold(s, "(tpd)"), containsFold(s, "per 24h"):
		return day
	case containsFold(s, "per hour"), containsFold(s, "/hour"), containsFold(s, "hourly"):
		return hour
	case containsFold(s, "per min"), containsFold(s, "/min"), containsFold(s, "/ min"), containsFold(s, "(rpm)"), containsFold(s, "(tpm)"):
		return minute
	case containsFold(s, "per second"), containsFold(s, "/second"), containsFold(s, "(rps)"):
		return second
	}
	return 0
}

// wait says how long to wait: what Retry-After or RetryInfo say, else what the headers of the limits that are used up say.
// RetryInfo is not believed when the quota of a day is violated: Gemini offers a retry in 20 s then. A limit that is named
// as the one that rejected (Anthropic's unified windows) makes any shorter wait useless.
func (r *Reply) wait(v *Verdict, t *told) {
	v.Wait, v.Told = r.retryAfter()
	if !v.Told && t.hasWait && !v.Dimension.long() {
		v.Wait, v.Told = t.wait, true
	}
	if v.Class == Overload {
		return
	}
	var seen [maxObservations]Observation
	reset, rejected, ok := spent(Observe(seen[:0], *r), &v.Dimension)
	switch {
	case rejected:
		v.Class, v.Wait, v.Told = Exhausted, max(v.Wait, reset), true
	case ok && !v.Told:
		v.Wait, v.Told = reset, true
	}
}

// spent is the longest wait that the headers of used-up limits tell: of those that count what was refused where that is
// known, or of any where words and headers disagree. It fills in what was refused where it is not known. rejected says that
// a limit was named as the one that refused.
func spent(seen []Observation, d *Dimension) (wait int64, rejected, ok bool) {
	longest := longestSpent(seen, d.Quantity)
	if longest == nil {
		longest = longestSpent(seen, Unknown)
	}
	if longest == nil {
		return 0, false, false
	}
	if q := longest.Dimension.Quantity; d.Quantity == Unknown || q.within(d.Quantity) {
		d.Quantity = q
	}
	if d.Window == 0 && d.Quantity == longest.Dimension.Quantity {
		d.Window = longest.Dimension.Window
	}
	return longest.Reset, longest.Rejected, true
}

func longestSpent(seen []Observation, q Quantity) (longest *Observation) {
	for i := range seen {
		o := &seen[i]
		of := o.Dimension.Quantity
		fits := q == Unknown || of == Unknown || of == q || of.within(q)
		if !o.spent() || o.Reset < 0 || !fits {
			continue
		}
		if longest == nil || o.Rejected && !longest.Rejected || o.Rejected == longest.Rejected && o.Reset > longest.Reset {
			longest = o
		}
	}
	return longest
}

// spent says whether nothing is left. A bare reset in a refusal (x-ratelimit-reset alone) is that of the limit that refused.
func (o *Observation) spent() bool {
	return o.Remaining == 0 || o.Rejected || o.Remaining < 0 && o.Limit < 0 && o.Dimension.Quantity == Unknown
}

// within says whether q is a part of what other counts.
func (q Quantity) within(other Quantity) bool {
	return other == Tokens && (q == InputTokens || q == OutputTokens)
}
