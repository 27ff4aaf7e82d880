// SPDX-License-Identifier: Apache-2.0

package feedback

// An Observation is what the headers of an answer say of one limit. What they do not say is -1.
type Observation struct {
	Dimension Dimension
	Scope     string // whose limit, in the provider's words: project, or the name of a policy; mostly empty. It points into the headers.
	Limit     int64  // units, >= 0
	Remaining int64  // units, >= 0, at most Limit
	Reset     int64  // ns until it is full again or a new window begins, in [0, MaxWait]
	Rejected  bool   // it is named as the one that refused

	window int64 // told in a value instead of the name
}

// maxObservations bounds what one answer may tell; the most seen in the field is 12.
const maxObservations = 16

// maxCount bounds limits: a provider that allows more allows everything.
const maxCount = 1_000_000_000_000_000

// Observe appends what the limit headers of an answer say to seen and returns it; with room in seen it does not allocate.
// It reads x-ratelimit-*, anthropic-ratelimit-*, RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers) and the
// three RateLimit-* of its older drafts. Headers that make no sense say nothing; those of one limit are put together.
func Observe(seen []Observation, r Reply) []Observation {
	o := observer{seen: seen, from: len(seen), date: r.header("date"), wall: r.Wall}
	for i := range r.Headers {
		o.header(r.Headers[i][0], trim(r.Headers[i][1]))
	}
	return o.done()
}

type observer struct {
	seen []Observation
	from int    // the first of ours
	date string // as the answer has it: read only once a time of day needs it
	wall int64
}

// now is the provider's time in unix ns, as in [Reply].
func (o *observer) now() int64 {
	if t, ok := parseHTTPDate(o.date); ok {
		return t
	}
	return o.wall
}

func (o *observer) header(name, value string) {
	switch {
	case len(name) < len("ratelimit") || value == "" || len(value) > maxHeader:
	case hasPrefixFold(name, "x-ratelimit-"):
		o.named(name[len("x-ratelimit-"):], value, 0)
	case hasPrefixFold(name, "anthropic-ratelimit-"):
		o.named(name[len("anthropic-ratelimit-"):], value, minute)
	case equalFold(name, "ratelimit"), equalFold(name, "ratelimit-policy"):
		o.list(value)
	case hasPrefixFold(name, "ratelimit-"):
		o.named(name[len("ratelimit-"):], value, 0)
	case hasPrefixFold(name, "x-rate-limit-"):
		o.named(name[len("x-rate-limit-"):], value, 0)
	}
}

// maxHeader is the length above which a header is not looked at.
const maxHeader = 1024

// at is the observation of a limit, made if it is new; nil if there are too many.
func (o *observer) at(d Dimension, scope string) *Observation {
	for i := o.from; i < len(o.seen); i++ {
		if s := &o.seen[i]; s.Dimension == d && s.Scope == scope {
			return s
		}
	}
	if len(o.seen)-o.from >= maxObservations {
		return nil
	}
	o.seen = append(o.seen, Observation{Dimension: d, Scope: scope, Limit: -1, Remaining: -1, Reset: -1})
	return &o.seen[len(o.seen)-1]
}

// done drops observations that say nothing and makes the others consistent.
func (o *observer) done() []Observation {
	kept := o.seen[:o.from]
	for _, s := range o.seen[o.from:] {
		if s.window > 0 {
			s.Dimension.Window, s.window = s.window, 0
		}
		if s.Limit >= 0 && s.Remaining > s.Limit {
			s.Remaining = s.Limit
		}
		if s.Limit >= 0 || s.Remaining >= 0 || s.Rejected || s.Reset >= 0 && !o.sentinel(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// sentinel says whether a lone reset means nothing: Azure sends limits of -1 with a reset of 0.
func (o *observer) sentinel(s Observation) bool {
	return s.Reset == 0 && s.Dimension.Quantity != Unknown
}

// first keeps the first of two values for one thing.
func first(p *int64, n int64) {
	if *p < 0 {
		*p = n
	}
}

// parseCount reads a number of units as a whole; a fraction is cut off. What is negative or no number says nothing.
func parseCount(s string) (int64, bool) {
	n, i := int64(0), 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		n = min(n*10+int64(s[i]-'0'), maxCount)
	}
	rest := s[i:]
	return n, i > 0 && (rest == "" || rest[0] == '.' && allDigits(rest[1:]))
}
