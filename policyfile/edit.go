// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/weirproxy/weir/policy"
)

// A Setting is a limit of a provider's models that is to be written into a policy.
type Setting struct {
	Provider, Models, Limit string // as openai, gpt-4o*, tpm
	Value                   int64
}

func (s Setting) path() []string {
	return []string{"providers", s.Provider, "models", s.Models, s.Limit}
}

// Path is where it stands in a policy.
func (s Setting) Path() string {
	path := ""
	for _, name := range s.path() {
		path = policy.Join(path, name)
	}
	return strings.TrimPrefix(path, ".")
}

// Set writes a limit into the files of a policy, and changes nothing else: what stands there is replaced, what does not is put in
// front of its neighbours. Comments and the order of everything stay. The file that has the provider is changed.
func Set(files []File, s Setting) ([]File, error) {
	before, err := ParseFiles(files)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		data, err := edit(f.Data, s)
		if errors.Is(err, errElsewhere) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", f.Name, s.Path(), err)
		}
		changed := slices.Clone(files)
		changed[i].Data = data
		after, err := ParseFiles(changed)
		if err != nil {
			return nil, fmt.Errorf("with %s: %d: %w", s.Path(), s.Value, err)
		}
		for _, c := range Diff(before, after) { // where YAML has more ways than we know, nothing is written
			if c.Path != s.Path() || c.Is != fmt.Sprint(s.Value) {
				return nil, fmt.Errorf("%s: %s: change it by hand", f.Name, s.Path())
			}
		}
		return changed, nil
	}
	return nil, fmt.Errorf("no provider %s in the policy", s.Provider)
}

var (
	errElsewhere = errors.New("not in this file")
	errAlias     = errors.New("it is written with an alias, or in a way that weir does not change: change it by hand")
)

// edit changes the text of one file.
func edit(data []byte, s Setting) ([]byte, error) {
	if bytes.ContainsRune(data, '\r') || bytes.HasPrefix(data, []byte("\ufeff")) {
		return nil, errAlias
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil || len(tree.Docs) != 1 {
		return nil, errElsewhere // it has no providers: the policy was read before
	}
	path := s.path()
	at := tree.Docs[0].Body
	for i, name := range path {
		m := mappingOf(at)
		if m == nil {
			return nil, errAlias
		}
		v := memberOf(m, name)
		switch {
		case v == nil && i < 2:
			return nil, errElsewhere
		case v == nil:
			return insert(data, m, path[i:], s.Value)
		case i == len(path)-1:
			return replace(data, v.Value, s.Value)
		}
		at = v.Value
	}
	return nil, errAlias
}

func memberOf(m *ast.MappingNode, name string) *ast.MappingValueNode {
	for _, v := range m.Values {
		if text, ok := textOf(v.Key); ok && text == name {
			return v
		}
	}
	return nil
}

// replace writes a number over a scalar.
func replace(data []byte, n ast.Node, value int64) ([]byte, error) {
	t := n.GetToken()
	if _, ok := textOf(n); !ok || t == nil {
		return nil, errAlias
	}
	start := offset(data, placeOf(n))
	text := strings.TrimSpace(t.Origin)
	if start < 0 || text == "" || !bytes.HasPrefix(data[start:], []byte(text)) {
		return nil, errAlias
	}
	return slices.Concat(data[:start], []byte(Grouped(value)), data[start+len(text):]), nil
}

// insert writes a member in front of the others of a mapping, with all that it lies within.
func insert(data []byte, m *ast.MappingNode, path []string, value int64) ([]byte, error) {
	text := Grouped(value)
	for i := len(path) - 1; i > 0; i-- {
		text = "{" + key(path[i]) + ": " + text + "}"
	}
	text = key(path[0]) + ": " + text
	if len(m.Values) == 0 {
		return nil, errAlias
	}
	first := placeOf(m.Values[0])
	start := offset(data, first)
	if start < 0 {
		return nil, errAlias
	}
	between := ", "
	if !m.IsFlowStyle {
		between = "\n" + strings.Repeat(" ", first.column-1)
	}
	return slices.Concat(data[:start], []byte(text+between), data[start:]), nil
}

// key is a name as it may be written before a colon.
func key(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" && strings.Trim(name, "0123456789_.-") != "" {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// offset is where a place is in the text, in bytes; columns are characters.
func offset(data []byte, at place) int {
	from := 0
	for range at.line - 1 {
		n := bytes.IndexByte(data[from:], '\n')
		if n < 0 {
			return -1
		}
		from += n + 1
	}
	column := 1
	for i := range string(data[from:]) {
		if column == at.column {
			return from + i
		}
		column++
	}
	return -1
}

// Grouped writes a number as policies have it: 30_000.
func Grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "_" + s[i:]
	}
	return s
}
