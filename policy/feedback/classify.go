// SPDX-License-Identifier: Apache-2.0

package feedback

// quotaWait is the stated wait from which a refusal is no matter of a rate, in ns: no limit by the minute takes an hour to
// refill, so what does is a quota (Azure answers a spent one with Retry-After: 86400).
const quotaWait = hour

// Classify says what an answer means. What the provider calls the refusal (its codes, the windows of violated quotas) comes
// before the status, and the words of a message last, for they are the least reliable: Gemini says "quota" of every rate.
func Classify(r Reply) Verdict {
	if r.Status < 400 && !refuses(r.text()) {
		return Verdict{Class: OK}
	}
	return r.refusal()
}

func (r *Reply) refusal() Verdict {
	var t told
	t.read(r.text())
	if t.codes[atDetail] == "" {
		t.codes[atDetail] = r.header("x-amzn-errortype")
	}
	m := t.meaning()
	v := Verdict{Class: classOf(m, r.Status), Ramp: m == tooSteep}
	if m == nothing || m == onlyKind {
		v.Class, v.Ramp = byWords(v.Class, r.Status, t.message)
	}
	if v.Class == Congestion && (r.Status == 413 || hasPrefixFold(t.message, "request too large")) {
		v = Verdict{Class: ClientError} // OpenAI and Groq say so of one call above the limit by the minute: no rate lets it through
	}
	if v.Class == Congestion || v.Class == Exhausted {
		v.Dimension = t.dimension()
		r.wait(&v, &t)
		if v.Dimension.long() || v.Told && v.Wait >= quotaWait {
			v.Class = Exhausted
		}
	} else if v.Class == Overload {
		r.wait(&v, &t)
		v.Dimension.Quantity = InFlight
	}
	v.Retry = r.retry(v.Class)
	return v
}

// meaning is that of the first code that has one.
func (t *told) meaning() meaning {
	kind := nothing
	for _, code := range t.codes {
		switch m := meaningOf(code); m {
		case nothing:
		case onlyKind:
			kind = m
		case tooFast: // the type may know better than the code
			if meaningOf(t.codes[atType]) == noQuota {
				return noQuota
			}
			return m
		default:
			return m
		}
	}
	return kind
}

// classOf is the class by the provider's word, or else by the status. Statuses below 400 come here with an
// error in their body, which is a refusal unless it says otherwise.
func classOf(m meaning, status int) Class {
	switch m {
	case tooFast, tooSteep:
		return Congestion
	case busy, warmingUp:
		if status == 400 || status == 401 || status == 403 || status == 404 {
			return ClientError
		}
		return Overload
	case noQuota:
		return Exhausted
	case theirs:
		return ClientError
	}
	switch {
	case status == 429 || status == 200 && m == onlyKind:
		return Congestion
	case status == 402:
		return Exhausted
	case status == 501 || status == 505:
		return ClientError
	case status == 408 || status == 424 || status == 498 || status >= 500 || status < 400:
		return Overload
	}
	return ClientError
}

// byWords looks at the words of a message that came without a code.
func byWords(c Class, status int, message string) (class Class, ramp bool) {
	rate := containsAny(message, rateWords)
	switch {
	case status >= 400 && status != 429:
		if c == ClientError && containsAny(message, strongWords) {
			return Exhausted, false
		}
		return c, false
	case status < 400 && rate:
		c = Congestion
	}
	if c != Congestion {
		return c, false
	}
	if containsAny(message, exhaustedWords) || !rate && containsAny(message, limitReached) {
		return Exhausted, false
	}
	return c, containsAny(message, rampWords)
}

// retry says whether a retry may be sent, by status: 429 408 502 503 504, never 400 401 403 404 405 413 415,
// 409 and 422 only when told. 529 and 498 are their providers' words for 503, and a 200 that refuses is like a 429.
func (r *Reply) retry(c Class) bool {
	should := r.header("x-should-retry")
	if c == Exhausted || equalFold(should, "false") {
		return false
	}
	switch r.Status {
	case 429, 408, 502, 503, 504, 529, 498:
		return c != ClientError
	case 409, 422:
		return equalFold(should, "true")
	}
	return r.Status < 400 && c != ClientError
}
