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
	for _, w := range quantityWords {
		if containsFold(s, w.phrase) {
			return w.of
		}
	}
	return Unknown
}

var quantityWords = [...]struct {
	phrase string
	of     Quantity
}{
	{"input token", InputTokens}, {"input_token", InputTokens}, {"(itpm)", InputTokens},
	{"output token", OutputTokens}, {"output_token", OutputTokens}, {"(otpm)", OutputTokens},
	{"concurren", InFlight}, {"in flight", InFlight}, {"in-flight", InFlight}, {"parallel requests", InFlight},
	{"token rate limit", Tokens}, {"tokens per", Tokens}, {"tokens_per", Tokens}, {"(tpm)", Tokens}, {"(tpd)", Tokens},
	{"too many tokens", Tokens},
	{"call rate limit", Requests}, {"requests per", Requests}, {"requests_per", Requests}, {"(rpm)", Requests}, {"(rpd)", Requests},
	{"too many requests", Requests}, {"calls /", Requests}, {"requests rate", Requests},
	{"token limit", Tokens}, {"tokens", Tokens},
}

// windowInText finds the window that a message names, the longest first; 0 if it names none.
func windowInText(s string) int64 {
	for _, w := range windowWords {
		if containsFold(s, w.phrase) {
			return w.ns
		}
	}
	return 0
}

var windowWords = [...]struct {
	phrase string
	ns     int64
}{
	{"per month", month}, {"/ month", month}, {"/month", month}, {"monthly", month}, {"per week", 7 * day}, {"weekly", 7 * day},
	{"per day", day}, {"per_day", day}, {"/day", day}, {"daily", day}, {"(rpd)", day}, {"(tpd)", day}, {"per 24h", day},
	{"per hour", hour}, {"/hour", hour}, {"hourly", hour},
	{"per min", minute}, {"/min", minute}, {"/ min", minute}, {"(rpm)", minute}, {"(tpm)", minute},
	{"per second", second}, {"/second", second}, {"(rps)", second},
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
