// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// A fieldParser walks over a structured field (RFC 9651), as much of it as rate limits need: items that are strings, tokens,
// numbers, booleans or byte sequences, with parameters. Inner lists are not well-formed here.
type fieldParser struct {
	s string
	i int
}

func (p *fieldParser) end() bool { return p.i >= len(p.s) }

func (p *fieldParser) spaces() {
	for !p.end() && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *fieldParser) take(c byte) bool {
	if p.end() || p.s[p.i] != c {
		return false
	}
	p.i++
	return true
}

// item reads a bare item: what it says, and whether it is a number.
func (p *fieldParser) item() (text string, number, ok bool) {
	if p.end() {
		return "", false, false
	}
	switch c := p.s[p.i]; {
	case c == '"':
		return p.str()
	case c == ':':
		p.i++
		text, ok = p.upTo(':')
		return text, false, ok
	case c == '?':
		p.i++
		text = p.run(isDigit)
		return text, false, text == "0" || text == "1"
	case isDigit(c) || c == '-':
		from := p.i
		p.take('-')
		p.run(func(c byte) bool { return isDigit(c) || c == '.' })
		return p.s[from:p.i], true, p.i > from
	}
	text = p.run(isToken)
	return text, false, text != ""
}

// str reads a string; its escapes stay as they are, for names are only compared.
func (p *fieldParser) str() (text string, number, ok bool) {
	from := p.i + 1
	end := jsonwalk.SkipString(p.s, p.i)
	if end-1 < from || p.s[end-1] != '"' {
		return "", false, false
	}
	p.i = end
	return p.s[from : end-1], false, true
}

func (p *fieldParser) upTo(c byte) (string, bool) {
	n := strings.IndexByte(p.s[p.i:], c)
	if n < 0 {
		return "", false
	}
	text := p.s[p.i : p.i+n]
	p.i += n + 1
	return text, true
}

func (p *fieldParser) run(is func(byte) bool) string {
	from := p.i
	for !p.end() && is(p.s[p.i]) {
		p.i++
	}
	return p.s[from:p.i]
}

func isToken(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}

// parameters reads what follows an item: ;q=100;w=60.
func (p *fieldParser) parameters(to *policyItem) bool {
	for p.take(';') {
		p.spaces()
		key := p.run(func(c byte) bool { return isToken(c) && c != '=' })
		if key == "" {
			return false
		}
		if !p.take('=') {
			continue // true, says the RFC
		}
		value, _, ok := p.item()
		if !ok {
			return false
		}
		to.set(key, value)
	}
	return true
}
