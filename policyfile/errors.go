// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// An Error is one thing that is wrong with a policy, and where.
type Error struct {
	File    string `json:"file"`
	Line    int    `json:"line"`           // from 1
	Column  int    `json:"column"`         // from 1, in characters
	Path    string `json:"path,omitempty"` // of the field, see [policy.Join]; empty for what is no YAML
	Problem string `json:"problem"`
	Hint    string `json:"hint,omitempty"` // what to write instead
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path != "" {
		s += e.Path + ": "
	}
	s += e.Problem
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Unwrap gives the error without its place.
func (e *Error) Unwrap() error {
	return &policy.FieldError{Path: e.Path, Problem: e.Problem, Hint: e.Hint}
}

// Errors gives every [Error] that err is or joins.
func Errors(err error) []*Error {
	var list []*Error
	for _, err := range flatten(err) {
		var e *Error
		if errors.As(err, &e) {
			list = append(list, e)
		}
	}
	return list
}

// flatten takes a joined error apart.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var list []error
	for _, err := range joined.Unwrap() {
		list = append(list, flatten(err)...)
	}
	return list
}

// fail notes an error, and that the field could not be read.
func (r *reader) fail(path string, at place, problem, hint string) {
	r.add(path, at, problem, hint)
	r.failed[path] = true
}

func (r *reader) add(path string, at place, problem, hint string) {
	file, line := r.where(at)
	r.errs = append(r.errs, &Error{file, line, at.column, path, problem, hint})
}

// err joins what was noted, by line.
func (r *reader) err() error {
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	list := make([]error, len(r.errs))
	for i, e := range r.errs {
		list[i] = e
	}
	return errors.Join(list...)
}

// compile compiles the policy and notes its errors, but for those that come of an error noted before: what could not be
// read looks to Compile as if it were not there.
func (r *reader) compile(spec *policy.Spec) *policy.Policy {
	if r.failed[""] {
		return nil
	}
	broken := map[string]bool{}
	for path := range r.failed {
		for ; path != ""; path = parent(path) {
			broken[path] = true
		}
	}
	p, err := policy.Compile(spec)
	for _, err := range flatten(err) {
		e := &policy.FieldError{Problem: err.Error()}
		errors.As(err, &e)
		if !broken[e.Path] && !r.under(e.Path) {
			r.add(e.Path, r.near(e.Path), e.Problem, e.Hint)
		}
	}
	return p
}

// under says whether the path lies within one that could not be read.
func (r *reader) under(path string) bool {
	for ; path != ""; path = parent(path) {
		if r.failed[path] {
			return true
		}
	}
	return false
}

// near gives the place of the path or of the nearest part of the policy that it lies within.
func (r *reader) near(path string) place {
	for ; path != ""; path = parent(path) {
		if at, ok := r.places[path]; ok {
			return at
		}
	}
	return r.places[""]
}

// parent cuts the last member or item off a path. Within a quoted key it cuts at each dot, which gives no known path.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
