// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A place is where something stands in a file, both from 1.
type place struct{ line, column int }

// placeOf gives where a node starts.
func placeOf(n ast.Node) place {
	switch m := n.(type) {
	case nil:
		return place{1, 1}
	case *ast.MappingNode:
		// A block mapping calls its first colon its start.
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return placeOf(m.Values[0])
		}
	case *ast.MappingValueNode:
		return tokenPlace(m.Key.GetToken())
	}
	return tokenPlace(n.GetToken())
}

func tokenPlace(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}
