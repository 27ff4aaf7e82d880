// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Patterns maps names to values. In a pattern * stands for any characters. A name's own entry comes first, then the
// pattern with the most characters besides *.
type Patterns[V any] struct {
	index  patterns
	values []V
}

// Add adds an entry, or replaces the one with the same pattern.
func (p *Patterns[V]) Add(pattern string, v V) {
	if at := p.index.add(pattern, len(p.values)); at < len(p.values) {
		p.values[at] = v
	} else {
		p.values = append(p.values, v)
	}
}

// Values are those of all entries.
func (p *Patterns[V]) Values() []V { return slices.Clone(p.values) }

// Len is the number of entries.
func (p *Patterns[V]) Len() int { return len(p.values) }

// Lookup finds the value for a name; false if nothing matches.
func (p *Patterns[V]) Lookup(name string) (v V, ok bool) {
	at := p.index.lookup(name)
	if at < 0 {
		return v, false
	}
	return p.values[at], true
}

// Uniform says whether all names have the same value, or none has one.
func (p *Patterns[V]) Uniform() bool {
	return p.index.uniform()
}

// patterns is the part of Patterns that is the same for all types of values, which the filter has in it once.
type patterns struct {
	exact map[string]int
	globs []glob
}

type glob struct {
	pattern string
	at      int // of its value
}

// uniform says whether there is no pattern, or one that matches everything.
//
//go:noinline
func (p *patterns) uniform() bool {
	n := len(p.exact) + len(p.globs)
	return n == 0 || n == 1 && p.lookup("\x00") >= 0
}

// add gives the place of a pattern's value: where it is already, or else next.
func (p *patterns) add(pattern string, next int) int {
	if !strings.Contains(pattern, "*") {
		if at, ok := p.exact[pattern]; ok {
			return at
		}
		if p.exact == nil {
			p.exact = map[string]int{}
		}
		p.exact[pattern] = next
		return next
	}
	i := 0
	for ; i < len(p.globs) && !moreSpecific(pattern, p.globs[i].pattern); i++ {
		if p.globs[i].pattern == pattern {
			return p.globs[i].at
		}
	}
	p.globs = slices.Insert(p.globs, i, glob{pattern, next})
	return next
}

// moreSpecific says whether pattern a is looked at before b.
func moreSpecific(a, b string) bool {
	return cmp.Or(cmp.Compare(literals(b), literals(a)), cmp.Compare(a, b)) < 0
}

func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// lookup gives the place of the value for a name, -1 if nothing matches.
func (p *patterns) lookup(name string) int {
	if at, ok := p.exact[name]; ok {
		return at
	}
	for i := range p.globs {
		if matchGlob(p.globs[i].pattern, name) {
			return p.globs[i].at
		}
	}
	return -1
}

// matchGlob says whether name matches pattern, in time linear in the name for each * of the pattern.
func matchGlob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
