// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirproxy/weir/policy"
)

// Bounds of a policy file.
const (
	MaxSize = 1 << 20 // bytes

	maxDepth  = 32      // of nesting
	maxText   = 4 << 10 // bytes of one key or value
	maxValues = 200_000 // after aliases are followed

	// maxBlock is how many block entries (lines with "key:" or "- item") a file may have. The time that the YAML parser
	// needs for a block mapping grows with the square of its length: 10,000 entries take half a second, a MiB of them minutes.
	maxBlock = 10_000
)

// A Result is a policy that was read.
type Result struct {
	Spec    *policy.Spec
	Policy  *policy.Policy
	JSON    []byte   // the spec as [policy.Encode] writes it
	Notices []Notice // by line
}

// Shared gives the policy as Envoys get it that share its limits: they hold of them what a control plane grants.
func (r *Result) Shared() (*Result, error) {
	spec, shared := *r.Spec, *r
	spec.Fleet.Shares = true
	shared.Spec = &spec
	var err error
	if shared.Policy, err = policy.Compile(&spec); err == nil {
		shared.JSON, err = policy.Encode(&spec)
	}
	return &shared, err
}

// Read reads the policy in a file or a folder.
func Read(path string) (*Result, error) {
	files, err := Load(path)
	if err != nil {
		return nil, err
	}
	return ParseFiles(files)
}

// Parse reads a policy. The name stands for the file in errors and notices. The error joins an [Error] for each thing that
// is wrong, by line; see [Errors].
func Parse(name string, data []byte) (*Result, error) { return ParseFiles([]File{{name, data}}) }

// ParseFiles reads a policy that is written in several files; see [Load].
func ParseFiles(files []File) (*Result, error) {
	r := newReader()
	root := r.parseAll(files)
	if root == nil {
		return nil, r.err()
	}
	spec := new(policy.Spec)
	r.root(root, spec)
	zones(spec)
	r.statics(spec)
	r.shares(spec)
	p := r.compile(spec)
	if err := r.err(); err != nil {
		return nil, err
	}
	json, err := policy.Encode(spec)
	if err != nil {
		return nil, &Error{File: files[0].Name, Line: 1, Column: 1, Problem: err.Error()}
	}
	r.advise(spec, p)
	return &Result{Spec: spec, Policy: p, JSON: json, Notices: r.sorted()}, nil
}

// shares refuses what only a control plane knows: whether there is one.
func (r *reader) shares(spec *policy.Spec) {
	if spec.Fleet.Shares {
		r.fail("fleet.shares", r.near("fleet.shares"), "weir serve and weir bootstrap --strict say this themselves", "leave it out")
	}
}

// A reader reads one policy. Its lines, and the places in them, are those of all files one after the other.
type reader struct {
	parts  []part
	lines  []string
	places map[string]place // by path: of a scalar, else of the key
	values int              // read so far

	anchors map[string]ast.Node // by name, as of the node that is looked at
	targets map[*ast.AliasNode]ast.Node
	fields  map[reflect.Type]fieldSet

	errs    []*Error
	failed  map[string]bool // paths with an error
	notices []Notice
}

func newReader() *reader {
	return &reader{
		places:  map[string]place{},
		failed:  map[string]bool{},
		anchors: map[string]ast.Node{},
		targets: map[*ast.AliasNode]ast.Node{},
		fields:  map[reflect.Type]fieldSet{},
	}
}

// root decodes the whole document, if it is YAML.
func (r *reader) root(n ast.Node, spec *policy.Spec) {
	if len(r.errs) > 0 {
		return
	}
	r.places[""] = placeOf(n)
	r.value(n, reflect.ValueOf(spec).Elem(), "")
}
