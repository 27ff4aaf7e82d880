// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A policy may be written in a folder: what its files say is one policy. Mappings of the same name are put together, as limits of
// tenants from many teams; anything else may be said once. Each file may name the apiVersion.

// A File is one that a policy is written in.
type File struct {
	Name string
	Data []byte
}

// Load reads a policy's file, or the files of its folder that end in .yaml or .yml and do not begin with a dot, by name. Kubernetes
// mounts a ConfigMap as a folder whose files all change at once, by the symlink ..data: then all are read of one side of it.
func Load(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		f, err := load(path, path)
		return []File{f}, err
	}
	from := path
	if real, err := filepath.EvalSymlinks(filepath.Join(path, "..data")); err == nil {
		from = real
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	var files []File
	left := MaxSize
	for _, e := range entries {
		name := e.Name()
		if ext := filepath.Ext(name); strings.HasPrefix(name, ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		f, err := load(filepath.Join(from, name), filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		if left -= len(f.Data); left < 0 {
			return nil, fmt.Errorf("%s: more than %d bytes in all", path, MaxSize)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("a folder without a file that ends in .yaml")}
	}
	return files, nil
}

func load(path, name string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	return File{name, data}, err
}

// A part is where a file begins among all lines.
type part struct {
	name  string
	lines int // before it
}

// begin is where the file begins that is being read.
func (r *reader) begin() place { return place{r.parts[len(r.parts)-1].lines + 1, 1} }

// where gives the file of a place, and the line in it.
func (r *reader) where(at place) (file string, line int) {
	for _, p := range r.parts {
		if p.lines < at.line {
			file, line = p.name, at.line-p.lines
		}
	}
	return file, line
}

// lineOf names the line of a place, as seen from another.
func (r *reader) lineOf(at, from place) string {
	file, line := r.where(at)
	if other, _ := r.where(from); other == file {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// shift puts the tokens of a file behind the lines of those before it.
func (r *reader) shift(tokens token.Tokens) {
	lines := r.begin().line - 1
	shifted := map[*token.Position]bool{}
	for _, t := range tokens {
		if p := t.Position; lines > 0 && p != nil && !shifted[p] {
			shifted[p] = true
			p.Line += lines
		}
	}
}

// parseAll gives one tree of all files; nil if there is an error.
func (r *reader) parseAll(files []File) (all ast.Node) {
	for _, f := range files {
		r.parts = append(r.parts, part{f.Name, len(r.lines)})
		root := r.parse(f.Data)
		if root == nil {
			continue
		}
		clear(r.anchors) // each file has its own
		r.survey(root, false)
		switch {
		case len(files) == 1:
			return root
		case mappingOf(root) == nil:
			r.fail("", placeOf(root), "no mapping in a file of a folder", "write KEY: VALUE")
		case all == nil:
			all = merged(nil, root)
		default:
			all = merged(mappingOf(all), root)
		}
	}
	if len(r.errs) > 0 {
		return nil
	}
	return all
}

// merged puts the members of a mapping behind those of another. A name that both have as mappings is merged; if not, it stays
// there twice, which is found later. All but the first apiVersion are left out if they say the same.
func merged(to *ast.MappingNode, n ast.Node) *ast.MappingNode {
	from := mappingOf(n)
	if to == nil {
		to = ast.Mapping(from.GetToken(), from.IsFlowStyle)
	}
	known := map[string]*ast.MappingValueNode{}
	for _, v := range to.Values {
		known[nameOf(v.Key)] = v
	}
	for _, v := range from.Values {
		same := known[nameOf(v.Key)]
		switch {
		case same == nil:
			to.Values = append(to.Values, v) // one that is twice in its own file stays so
		case mappingOf(same.Value) != nil && mappingOf(v.Value) != nil:
			*same = ast.MappingValueNode{BaseNode: same.BaseNode, Start: same.Start, Key: same.Key, Value: merged(merged(nil, same.Value), v.Value)}
		case nameOf(v.Key) != "apiVersion" || nameOf(v.Value) != nameOf(same.Value):
			to.Values = append(to.Values, v)
		}
	}
	return to
}

// mappingOf is a node as a mapping, if it is one.
func mappingOf(n ast.Node) *ast.MappingNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n
	case *ast.MappingValueNode:
		return ast.Mapping(n.GetToken(), false, n)
	}
	return nil
}
