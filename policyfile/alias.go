// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// survey goes once through the tree in the order of the file. It finds what each alias stands for, the last anchor of that
// name before it; an anchor is not known within its own value, so that following aliases comes to an end. And it looks for
// plain scalars that the YAML parser should not have taken. flow says whether n is within brackets or braces.
func (r *reader) survey(n ast.Node, flow bool) {
	switch n := n.(type) {
	case *ast.AnchorNode:
		name := nameOf(n.Name)
		delete(r.anchors, name)
		r.survey(n.Value, flow)
		r.anchors[name] = n.Value
	case *ast.AliasNode:
		if target, ok := r.anchors[nameOf(n.Value)]; ok {
			r.targets[n] = target
		}
	case *ast.TagNode:
		r.survey(n.Value, flow)
	case *ast.MappingKeyNode:
		r.survey(n.Value, flow)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			r.survey(v, flow || n.IsFlowStyle)
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			r.survey(v, flow || n.IsFlowStyle)
		}
	case *ast.MappingValueNode:
		r.survey(n.Key, flow)
		r.colon(n, flow)
		r.survey(n.Value, flow)
	case *ast.LiteralNode:
	case ast.ScalarNode:
		r.plain(n.GetToken(), flow)
	}
}

// colon refuses {rpm:60}, which the parser takes for rpm: 60, but {llama3:8b: …} for llama3: "8b: …".
func (r *reader) colon(n *ast.MappingValueNode, flow bool) {
	colon := n.Start
	if !flow || !isPlain(n.Key.GetToken()) || colon == nil || colon.Type != token.MappingValueType || colon.Next == nil {
		return
	}
	switch colon.Next.Type {
	case token.CollectEntryType, token.MappingStartType, token.MappingEndType, token.SequenceStartType, token.SequenceEndType:
		return
	}
	at, next := tokenPlace(colon), tokenPlace(colon.Next)
	if next.line == at.line && next.column == at.column+1 {
		r.fail("", at, "no blank after the colon", "write KEY: VALUE, or put a name that has a colon in quotes")
	}
}

// plain refuses a scalar without quotes with what may not be in one. The parser takes {tpm: 5 rpm: 6}, where a comma is
// missing, for one long value, and drops tabs.
func (r *reader) plain(t *token.Token, flow bool) {
	if !isPlain(t) {
		return
	}
	switch {
	case t.Value != "" && strings.Contains(",[]{}%@`", t.Value[:1]):
		r.fail("", tokenPlace(t), fmt.Sprintf("not YAML: a value without quotes that begins with %s", t.Value[:1]), "put the value in quotes")
	case strings.Contains(t.Value, ": ") || strings.HasSuffix(t.Value, ":") && flow:
		r.fail("", tokenPlace(t), "not YAML: a colon in a value without quotes", "check whether a comma is missing, or put the value in quotes")
	case strings.ContainsRune(strings.TrimSpace(t.Origin), '\t'):
		r.fail("", tokenPlace(t), "not YAML: a tab in a value without quotes", `write a blank, or \t in double quotes`)
	case flow && strings.ContainsAny(t.Value, "[]{}"):
		r.fail("", tokenPlace(t), "not YAML: a bracket or brace in a value without quotes", "check brackets and braces, or put the value in quotes")
	}
}

func isPlain(t *token.Token) bool {
	return t != nil && t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// resolve gives the node that n stands for; false if an error was noted.
func (r *reader) resolve(n ast.Node, path string) (ast.Node, bool) {
	for {
		switch m := n.(type) {
		case *ast.AnchorNode:
			n = m.Value
		case *ast.AliasNode:
			target, ok := r.targets[m]
			if !ok {
				name := nameOf(m.Value)
				r.fail(path, placeOf(m), fmt.Sprintf("no anchor &%s before this alias", name), fmt.Sprintf(`if it is a text, write "*%s"`, name))
				return nil, false
			}
			n = target
		case *ast.TagNode:
			r.fail(path, placeOf(m), fmt.Sprintf("tag %s", nameOf(m)), "leave the tag out; for a text use quotes")
			return nil, false
		default:
			return n, true
		}
	}
}

func isNull(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return n == nil || ok
}
