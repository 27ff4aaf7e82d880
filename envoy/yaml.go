// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Comments explains fields of a YAML document. The keys are paths such as $.node.metadata.
type Comments map[string]string

// YAML writes an Envoy configuration as people read it: fields in the order of the API, with comments. The same message
// gives the same bytes.
func YAML(m proto.Message, comments Comments) ([]byte, error) {
	j, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("as JSON: %w", err)
	}
	// protojson puts blanks at random places, so that nobody relies on them: only what is decoded is stable.
	var v any
	if err := yaml.UnmarshalWithOptions(j, &v, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("as YAML: %w", err)
	}
	out, err := yaml.MarshalWithOptions(quote(v), yaml.WithComment(comments.goccy()))
	if err != nil {
		return nil, fmt.Errorf("as YAML: %w", err)
	}
	return out, nil
}

func (c Comments) goccy() yaml.CommentMap {
	m := yaml.CommentMap{}
	for path, text := range c {
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, " "+strings.TrimSuffix(line, "\n"))
		}
		m[path] = []*yaml.Comment{yaml.HeadComment(lines...)}
	}
	return m
}

// misread is what the writer leaves bare, though a YAML 1.1 reader such as Envoy's takes it for a number, as a node named 1e5,
// or may not take it at all, as ::1.
var misread = regexp.MustCompile(`^(:.*|[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?)$`)

// A quoted string is one that has to stand in quotes.
type quoted string

func (q quoted) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(q))), nil }

// quote marks the strings in a decoded document that would be misread.
func quote(v any) any {
	switch v := v.(type) {
	case yaml.MapSlice:
		for i := range v {
			v[i].Value = quote(v[i].Value)
		}
	case []any:
		for i := range v {
			v[i] = quote(v[i])
		}
	case string:
		if misread.MatchString(v) {
			return quoted(v)
		}
	}
	return v
}
