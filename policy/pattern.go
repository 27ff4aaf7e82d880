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
	exact map[string]V
	globs []glob[V]
}

type glob[V any] struct {
	pattern string
	value   V
}

// Add adds an entry, or replaces the one with the same pattern.
func (p *Patterns[V]) Add(pattern string, v V) {
	if !strings.Contains(pattern, "*") {
		if p.exact == nil {
			p.exact = map[string]V{}
		}
		p.exact[pattern] = v
		return
	}
	at := 0 // moved up by hand: slices.SortFunc is 30 KB of WebAssembly for each type that it is used with
	for ; at < len(p.globs); at++ {
		switch g := &p.globs[at]; {
		case g.pattern == pattern:
			g.value = v
			return
		case moreSpecific(pattern, g.pattern):
			p.globs = slices.Insert(p.globs, at, glob[V]{pattern, v})
			return
		}
	}
	p.globs = append(p.globs, glob[V]{pattern, v})
}

// moreSpecific says whether pattern a is looked at before b.
func moreSpecific(a, b string) bool {
	return cmp.Or(cmp.Compare(literals(b), literals(a)), cmp.Compare(a, b)) < 0
}

// Values are those of all entries.
func (p *Patterns[V]) Values() (all []V) {
	for _, v := range p.exact {
		all = append(all, v)
	}
	for _, g := range p.globs {
		all = append(all, g.value)
	}
	return all
}

// Len is the number of entries.
func (p *Patterns[V]) Len() int { return len(p.exact) + len(p.globs) }

func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// Lookup finds the value for a name; false if nothing matches.
func (p *Patterns[V]) Lookup(name string) (v V, ok bool) {
	if v, ok = p.exact[name]; ok {
		return v, true
	}
	for _, g := range p.globs {
		if matchGlob(g.pattern, name) {
			return g.value, true
		}
	}
	return v, false
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
