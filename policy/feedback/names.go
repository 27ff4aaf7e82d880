// SPDX-License-Identifier: Apache-2.0

package feedback

import "strings"

// A field is what a limit header tells.
type field uint8

const (
	noField field = iota
	limitField
	remainingField
	resetField
	statusField
	windowField // and quantities are words of names too, but no fields
)

// named reads a header whose name is made of words in any order, behind its prefix: limit-requests, remaining-tokens-day,
// input-tokens-reset, unified-5h-status. A word that is not known is the scope.
func (o *observer) named(name, value string, window int64) {
	d := Dimension{}
	what, scope, input, output := noField, "", false, false
	for rest := name; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, "-")
		f, q, w := readWord(word)
		switch {
		case f != noField && f != windowField:
			what = f
		case f == windowField:
			d.Window = w
		case q != Unknown:
			d.Quantity = q
		case equalFold(word, "input"):
			input = true
		case equalFold(word, "output"):
			output = true
		case scope == "" && !equalFold(word, "after"):
			scope = word
		}
	}
	if d.Quantity == Tokens && input != output {
		d.Quantity = InputTokens
		if output {
			d.Quantity = OutputTokens
		}
	}
	if d.Window == 0 && d.Quantity != Unknown {
		d.Window = window
	}
	if what != noField {
		o.fill(d, scope, what, value)
	}
}

func (o *observer) fill(d Dimension, scope string, what field, value string) {
	value, old := oldList(value)
	n, ok := parseCount(value)
	if what == resetField {
		n, ok = parseReset(value, o.now())
	} else if what == statusField {
		ok = equalFold(value, "rejected")
	}
	if !ok {
		return
	}
	s := o.at(d, scope)
	switch {
	case s == nil:
	case what == limitField:
		first(&s.Limit, n)
		if d.Window == 0 {
			s.window = old
		}
	case what == remainingField:
		first(&s.Remaining, n)
	case what == resetField:
		first(&s.Reset, n)
	case what == statusField:
		s.Rejected = true
	}
}

// oldList takes the first number of a list such as `10, 10;w=1, 50;w=60`, by which Envoy and drafts 2 to 6 say which limits
// there are: the first is the one that the other headers are about. window is that of its own policy, in ns, or 0.
func oldList(value string) (head string, window int64) {
	head, rest, ok := strings.Cut(value, ",")
	if !ok || len(value) < 3 || !isDigit(value[0]) {
		return value, 0
	}
	head = trim(head)
	for rest != "" {
		var item string
		item, rest, _ = strings.Cut(rest, ",")
		number, params, _ := strings.Cut(trim(item), ";")
		if trim(number) != head {
			continue
		}
		for params != "" {
			var p string
			p, params, _ = strings.Cut(params, ";")
			if w, ok := strings.CutPrefix(trim(p), "w="); ok {
				if n, ok := parseDecimal(w, second); ok {
					return head, n
				}
			}
		}
	}
	return head, 0
}

// readWord reads one word of a header's name.
func readWord(word string) (field, Quantity, int64) {
	for _, w := range [...]struct {
		word string
		f    field
		q    Quantity
		ns   int64
	}{
		{"limit", limitField, 0, 0}, {"remaining", remainingField, 0, 0}, {"reset", resetField, 0, 0}, {"status", statusField, 0, 0},
		{"requests", 0, Requests, 0}, {"request", 0, Requests, 0}, {"req", 0, Requests, 0}, {"query", 0, Requests, 0},
		{"tokens", 0, Tokens, 0}, {"token", 0, Tokens, 0}, {"concurrent", 0, InFlight, 0}, {"concurrency", 0, InFlight, 0},
		{"second", windowField, 0, second}, {"minute", windowField, 0, minute}, {"min", windowField, 0, minute},
		{"hour", windowField, 0, hour}, {"5h", windowField, 0, 5 * hour}, {"day", windowField, 0, day}, {"daily", windowField, 0, day},
		{"7d", windowField, 0, 7 * day}, {"month", windowField, 0, month},
	} {
		if equalFold(word, w.word) {
			return w.f, w.q, w.ns
		}
	}
	return noField, Unknown, 0
}

// quantityOfWord reads a code such as OpenAI's error.type.
func quantityOfWord(word string) Quantity {
	switch {
	case equalFold(word, "input_tokens"):
		return InputTokens
	case equalFold(word, "output_tokens"):
		return OutputTokens
	}
	_, q, _ := readWord(word)
	return q
}
