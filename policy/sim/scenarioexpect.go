// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A want is one line of what is expected.
type want struct {
	line int
	text string
	ask  *ask // it is about this line; nil: about all

	admitted bool // else refused
	any      bool // no number: all of the line's
	compare  string
	n        int64
	unit     string        // tokens or calls
	window   time.Duration // 0: in all
	tenant   string        // empty: all

	words []string // reason, tier and dimension of a refusal
	wait  time.Duration
	left  *int64
	waits bool
}

const expectHint = "write expect admitted, expect admitted 3, expect refused limit_exceeded tenant tpm wait 12s after a request, " +
	"or expect admitted tokens <= 10_000 in any 60s"

// expect reads expect admitted|refused ….
func (p *parser) expect(line string) {
	p.take("expect")
	w := want{line: p.line, text: line, compare: "="}
	switch {
	case p.take("admitted"):
		w.admitted = true
	case p.take("refused"):
	default:
		p.fail(expectHint, "neither admitted nor refused is expected")
		return
	}
	if len(p.words) > 0 && (p.words[0] == "tokens" || p.words[0] == "calls") {
		if p.sum(&w) {
			p.wants = append(p.wants, w)
		}
		return
	}
	if len(p.asks) == 0 {
		p.fail(expectHint, "there is no request before it")
		return
	}
	w.ask = p.asks[len(p.asks)-1]
	if p.ofLine(&w) {
		p.wants = append(p.wants, w)
	}
}

// number reads [<=|>=|=] N, if it comes next.
func (p *parser) number(w *want) (there, ok bool) {
	if len(p.words) == 0 {
		return false, true
	}
	compared := slices.Contains([]string{"<=", ">=", "="}, p.words[0])
	if compared {
		w.compare, _ = p.next("", "")
	} else if p.words[0][0] < '0' || p.words[0][0] > '9' {
		return false, true
	}
	w.n, ok = p.count("the number", w.compare+" 10_000")
	return true, ok
}

// sum reads tokens|calls COMPARE N [in any TIME] [of TENANT].
func (p *parser) sum(w *want) bool {
	w.unit, _ = p.next("", "")
	there, ok := p.number(w)
	if !ok {
		return false
	}
	if !there {
		p.fail("write <= 10_000", "it does not say how many %s", w.unit)
		return false
	}
	if p.take("in") {
		if p.take("any") {
			if w.window, ok = p.duration("the window", "in any 60s"); !ok {
				return false
			}
		} else if !p.take("all") {
			p.fail("write in any 60s, or in all", "it does not say in which time")
			return false
		}
	}
	if p.take("of") {
		if w.tenant, ok = p.next("the tenant", "of acme"); !ok {
			return false
		}
	}
	if w.window > 0 && (!w.admitted || w.compare == "=") {
		p.fail("write expect admitted "+w.unit+" <= N in any 60s", "in any window it can only be said how many are admitted, at most or at least")
		return false
	}
	p.end()
	return len(p.words) == 0
}

// ofLine reads [N] and, of a refusal, [REASON] [TIER] [DIMENSION] [wait TIME] [left N].
func (p *parser) ofLine(w *want) bool {
	there, ok := p.number(w)
	w.any = !there
	for ok && len(p.words) > 0 {
		switch word, _ := p.next("", ""); {
		case w.admitted:
			p.fail(expectHint, "unknown word %q", word)
			return false
		case word == "wait":
			w.waits = true
			w.wait, ok = p.duration("the wait", "wait 12s")
		case word == "left":
			w.left = new(int64)
			*w.left, ok = p.signed()
		case known(word):
			w.words = append(w.words, word)
		default:
			p.fail("write a reason such as limit_exceeded, a tier such as tenant, a dimension such as tpm, wait or left", "unknown word %q", word)
			return false
		}
	}
	return ok
}

// signed reads a count that may be below zero: debt.
func (p *parser) signed() (int64, bool) {
	if len(p.words) > 0 && strings.HasPrefix(p.words[0], "-") {
		p.words[0] = p.words[0][1:]
		n, ok := p.count("what is left", "left -500")
		return -n, ok
	}
	return p.count("what is left", "left 500")
}

// known says whether a word is the name of a reason, a tier or a dimension.
func known(word string) bool {
	for i := range 64 {
		for _, n := range []fmt.Stringer{policy.Reason(i), policy.Tier(i), policy.Dimension(i)} {
			if n.String() == word && word != "unknown" && word != "none" {
				return true
			}
		}
	}
	return false
}
