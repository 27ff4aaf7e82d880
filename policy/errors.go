// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"strings"

	"github.com/weirproxy/weir/policy/brief"
)

// A FieldError is one thing that is wrong with a policy.
type FieldError struct {
	Path    string // of the field, such as limits.tenant.acme.tpm; see Join
	Problem string
	Hint    string // what to write instead; may be empty
}

func (e *FieldError) Error() string {
	s := e.Path + ": " + e.Problem
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Join gives the path of a member; a key with a dot, a blank or a control character is quoted.
func Join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ". \"") || !Printable(key) {
		key = brief.Sprintf("%q", key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// problems collects what is wrong.
type problems []error

// add is not inlined: 40 KB of WebAssembly less.
//
//go:noinline
func (p *problems) add(path, hint, format string, args ...any) {
	*p = append(*p, &FieldError{Path: path, Problem: brief.Sprintf(format, args...), Hint: hint})
}

func (p problems) err() error { return errors.Join(p...) }

// oneOf checks a word and gives its default.
func (p *problems) oneOf(path, word, otherwise string, words ...string) string {
	if word == "" {
		return otherwise
	}
	for _, w := range words {
		if w == word {
			return word
		}
	}
	last := len(words) - 1
	p.add(path, "write "+strings.Join(words[:last], ", ")+" or "+words[last], "unknown value %q", word)
	return otherwise
}
