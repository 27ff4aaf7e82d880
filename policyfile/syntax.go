// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parse gives the tree of the one document in the file; nil if there is an error.
func (r *reader) parse(data []byte) ast.Node {
	if len(data) > MaxSize {
		r.fail("", r.begin(), fmt.Sprintf("more than %d bytes", MaxSize), "")
		return nil
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	lines := strings.Split(text, "\n")
	r.lines = append(r.lines, lines...)
	if !r.printable(lines) {
		return nil
	}
	file, err := r.tree(text)
	if err != nil {
		r.syntax(err)
	}
	if file == nil {
		return nil
	}
	return r.document(file)
}

// printable looks for what no YAML file may have.
func (r *reader) printable(lines []string) bool {
	for i, line := range lines {
		i += r.begin().line - 1
		column := 0
		for j, c := range line {
			column++
			if _, n := utf8.DecodeRuneInString(line[j:]); c == utf8.RuneError && n == 1 {
				r.fail("", place{i + 1, column}, "not YAML: a byte that is no UTF-8", "save the file as UTF-8")
				return false
			}
			if c < ' ' && c != '\t' || c == 0x7f {
				r.fail("", place{i + 1, column}, fmt.Sprintf("not YAML: control character %U", c), `in double quotes write \x00 and the like`)
				return false
			}
		}
	}
	return true
}

// tree parses the text; nil without an error if an error was noted. The YAML parser is not ours and has panicked on some
// inputs in the past; a policy comes from outside, so it must not take the control plane down.
func (r *reader) tree(text string) (f *ast.File, err error) {
	defer func() {
		if x := recover(); x != nil {
			f, err = nil, fmt.Errorf("the parser failed: %v", x)
		}
	}()
	tokens := lexer.Tokenize(text)
	r.shift(tokens)
	if !r.bounded(tokens) {
		return nil, nil
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // duplicates are found later, all of them
}

// bounded checks the nesting and the number of block entries, before the parser recurses into them, and that there is no
// directive, which it may panic on.
func (r *reader) bounded(tokens token.Tokens) bool {
	var columns []int // of the block entries that the token is in
	flow, entries := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			if flow == 0 {
				columns, entries = nest(columns, t), entries+1
			}
		case token.DirectiveType:
			r.directive(t)
			return false
		}
		if len(columns)+flow > maxDepth {
			r.fail("", tokenPlace(t), fmt.Sprintf("nested more than %d deep", maxDepth), "")
			return false
		}
		if entries > maxBlock {
			r.fail("", tokenPlace(t), fmt.Sprintf("more than %d keys and items on lines of their own", maxBlock), "write long mappings within braces")
			return false
		}
	}
	return true
}

func (r *reader) directive(t *token.Token) {
	at := tokenPlace(t)
	if at.column == 1 {
		r.fail("", at, "a directive", "leave the line out")
		return
	}
	r.fail("", at, "not YAML: a value without quotes that begins with %", "put the value in quotes")
}

// nest gives the columns of the block entries around and with the one that t belongs to.
func nest(columns []int, t *token.Token) []int {
	if t.Type == token.MappingValueType && t.Prev != nil {
		t = t.Prev // the key
	}
	column := tokenPlace(t).column
	for len(columns) > 0 && columns[len(columns)-1] >= column {
		columns = columns[:len(columns)-1]
	}
	return append(columns, column)
}

// document gives the body of the only document that has one.
func (r *reader) document(file *ast.File) ast.Node {
	var body ast.Node
	for _, d := range file.Docs {
		if isNull(d.Body) {
			continue
		}
		if body != nil {
			r.fail("", tokenPlace(d.Start), "a second document", "write one policy to a file")
			return nil
		}
		body = d.Body
	}
	if body == nil {
		r.fail("", r.begin(), "no policy in the file", "docs/policy.md has one to start from")
	}
	return body
}

// syntax notes an error of the parser.
func (r *reader) syntax(err error) {
	at, problem := r.begin(), err.Error()
	var e interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &e) {
		at, problem = tokenPlace(e.GetToken()), e.GetMessage()
	}
	r.fail("", at, "not YAML: "+strings.ReplaceAll(problem, "\t", `\t`), syntaxHint(problem, r.line(at.line)))
}

// line gives a line of the file, from 1; empty if there is none.
func (r *reader) line(n int) string {
	if n < 1 || n > len(r.lines) {
		return ""
	}
	return r.lines[n-1]
}
