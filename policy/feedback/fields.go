// SPDX-License-Identifier: Apache-2.0

package feedback

// A policyItem is one member of a RateLimit or RateLimit-Policy list. What it does not say is -1.
type policyItem struct {
	name          string
	quota, left   int64
	window, reset int64 // ns
	quantity      Quantity
	bytes         bool // counts bytes, which weir does not
}

// list reads RateLimit or RateLimit-Policy: lists of structured fields (RFC 9651), or in drafts 7 and 8 a dictionary
// (`limit=100, remaining=50, reset=30`). A field that is not well-formed is ignored as a whole, as the RFC wants it. Members
// are joined by their names: the policy gives limit and window, RateLimit what is left.
func (o *observer) list(value string) {
	var found [maxObservations]policyItem
	n, ok := parseList(value, &found)
	if !ok {
		return
	}
	for i := range found[:n] {
		o.member(&found[i])
	}
}

func (o *observer) member(p *policyItem) {
	if p.bytes {
		return
	}
	s := o.byScope(p.name)
	if s == nil || p.name == "" && s.Limit >= 0 && p.quota >= 0 && p.quota != s.Limit {
		return // of nameless policies the one counts that the other headers are about
	}
	if p.quantity != Unknown {
		s.Dimension.Quantity = p.quantity
	}
	if p.window > 0 && s.window == 0 {
		s.window = p.window
	}
	for _, v := range [...]struct {
		to *int64
		n  int64
	}{{&s.Limit, p.quota}, {&s.Remaining, p.left}, {&s.Reset, p.reset}} {
		if v.n >= 0 {
			first(v.to, v.n)
		}
	}
}

// byScope finds the observation of a named policy whatever its dimension, for RateLimit does not repeat it.
func (o *observer) byScope(name string) *Observation {
	for i := o.from; i < len(o.seen) && name != ""; i++ {
		if o.seen[i].Scope == name {
			return &o.seen[i]
		}
	}
	return o.at(Dimension{}, name)
}

// parseList reads the members of a list; false if it is not well-formed.
func parseList(value string, found *[maxObservations]policyItem) (n int, ok bool) {
	p := fieldParser{s: value}
	dictionary := policyItem{quota: -1, left: -1, window: -1, reset: -1}
	for p.spaces(); !p.end(); {
		item := policyItem{quota: -1, left: -1, window: -1, reset: -1}
		key, bare, ok := p.item()
		if !ok {
			return 0, false
		}
		if p.take('=') { // a dictionary
			v, _, ok := p.item()
			if !ok || !p.parameters(&item) {
				return 0, false
			}
			dictionary.set(key, v)
		} else {
			if item.name = key; bare {
				item.name = ""
				item.set("q", key)
			}
			if !p.parameters(&item) {
				return 0, false
			}
			if n < len(found) {
				found[n] = item
				n++
			}
		}
		p.spaces()
		if p.end() {
			break
		}
		if !p.take(',') {
			return 0, false
		}
		if p.spaces(); p.end() {
			return 0, false // a trailing comma
		}
	}
	if dictionary.quota >= 0 || dictionary.left >= 0 {
		found[0], n = dictionary, max(n, 1)
	}
	return n, true
}

// set takes a parameter by its name.
func (p *policyItem) set(key, value string) {
	n, ok := parseCount(value)
	ns, timeOK := parseDecimal(value, second)
	switch {
	case (key == "q" || key == "limit") && ok:
		p.quota = n
	case (key == "r" || key == "remaining") && ok:
		p.left = n
	case key == "w" && timeOK:
		p.window = ns
	case (key == "t" || key == "reset") && timeOK:
		p.reset = ns
	case key == "qu" || key == "unit" || len(key) > 5 && key[len(key)-5:] == "-unit":
		p.unit(value)
	}
}

// unit reads a quota unit. The draft knows requests, content-bytes and concurrent-requests; tokens are vendors' words.
func (p *policyItem) unit(u string) {
	switch {
	case containsFold(u, "byte"):
		p.bytes = true
	case containsFold(u, "concurrent"):
		p.quantity = InFlight
	case containsFold(u, "input") && containsFold(u, "token"):
		p.quantity = InputTokens
	case containsFold(u, "output") && containsFold(u, "token"):
		p.quantity = OutputTokens
	case containsFold(u, "token"):
		p.quantity = Tokens
	case containsFold(u, "request"):
		p.quantity = Requests
	}
}
