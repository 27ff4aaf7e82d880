// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

// A parser reads a scenario line by line.
type parser struct {
	*Scenario
	now     *policy.Spec   // the policy as far as it has been read
	places  map[string]int // line of each limit, by its path in the policy
	line    int
	words   []string // of the line, what is left of them
	changed bool     // a change at a time was read: no limit may come without one any more
	last    time.Duration
	total   int // requests
	errs    []error
}

func (p *parser) fail(hint, format string, args ...any) {
	p.errs = append(p.errs, &ScenarioError{p.File, p.line, fmt.Sprintf(format, args...), hint})
}

// lineWords is the first words that a line may have, for hints.
const lineWords = "a line begins with tenant, user, tool, environment, model or output, with at or every, or with expect"

func (p *parser) lines(text string) {
	lines := strings.Split(text, "\n")
	if len(lines) > maxLines {
		p.line = maxLines
		p.fail("", "more than %d lines", maxLines)
		return
	}
	for i, line := range lines {
		p.line = i + 1
		line, comment, _ := strings.Cut(line, "#")
		if p.Title == "" && p.spec == nil && strings.TrimSpace(line) == "" {
			p.Title = strings.TrimSpace(comment)
		}
		if p.words = strings.Fields(line); len(p.words) > 0 {
			p.statement(strings.TrimSpace(line))
		}
		if len(p.errs) >= 20 {
			return
		}
	}
	p.base()
	if p.total == 0 && len(p.errs) == 0 {
		p.fail("write: at 0s acme input 100 output 900", "nobody asks for anything")
	}
}

func (p *parser) statement(line string) {
	switch word := p.words[0]; word {
	case "tenant", "user", "tool", "environment", "model", "output":
		if p.changed || len(p.asks) > 0 {
			p.fail("write: at 30s change "+line, "a limit after the first request would have to have a time")
			return
		}
		p.limit()
	case "at", "every":
		p.base()
		p.timeline(line)
	case "expect":
		p.expect(line)
	default:
		p.fail(lineWords, "unknown word %q", word)
	}
}

// base ends the policy that is there from the start.
func (p *parser) base() {
	if p.spec == nil {
		p.spec = clone(p.now)
		p.compiles(p.spec)
	}
}

// compiles reports what is wrong with a policy at the line of the limit in question: once, not again for each change.
func (p *parser) compiles(s *policy.Spec) {
	if len(p.errs) > 0 {
		return
	}
	_, err := policy.Compile(s)
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		return
	}
	for _, err := range joined.Unwrap() {
		var f *policy.FieldError
		if errors.As(err, &f) {
			line := p.line
			for path := f.Path; path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
				if at, ok := p.places[path]; ok {
					line = at
					break
				}
			}
			p.errs = append(p.errs, &ScenarioError{p.File, line, f.Path + ": " + f.Problem, f.Hint})
		}
	}
}

// next takes the next word; false, with an error, if there is none.
func (p *parser) next(what, example string) (string, bool) {
	if len(p.words) == 0 {
		p.fail("write "+example, "%s is missing", what)
		return "", false
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, true
}

// take takes the next word if it is this one.
func (p *parser) take(word string) bool {
	if len(p.words) == 0 || p.words[0] != word {
		return false
	}
	p.words = p.words[1:]
	return true
}

// A value is one of policy's values, in the policy file's own notation.
type value interface{ UnmarshalText([]byte) error }

func (p *parser) value(v value, what, example string) bool {
	w, ok := p.next(what, example)
	if !ok {
		return false
	}
	if err := v.UnmarshalText([]byte(w)); err != nil {
		p.fail("", "%v", err)
		return false
	}
	return true
}

func (p *parser) duration(what, example string) (time.Duration, bool) {
	var d policy.Duration
	ok := p.value(&d, what, example)
	if ok && time.Duration(d) > maxLength {
		p.fail("", "%v: a scenario lasts 31d at most", time.Duration(d))
		return 0, false
	}
	return time.Duration(d), ok
}

func (p *parser) count(what, example string) (int64, bool) {
	var c policy.Count
	ok := p.value(&c, what, example)
	if ok && int64(c) > policy.MaxUnits {
		p.fail("", "%s %d is more than %d", what, c, int64(policy.MaxUnits))
		return 0, false
	}
	return int64(c), ok
}

// end says that nothing may follow.
func (p *parser) end() {
	if len(p.words) > 0 {
		p.fail("", "nothing is known of %s here", strconv.Quote(strings.Join(p.words, " ")))
	}
}
