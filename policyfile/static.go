// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// Fixed replies are files beside the policy's. Each holds one answer as the provider would give it, as JSON. What streams in its
// place is made of it here, so that the filter need not know how.

const staticHint = "write a file with one answer as JSON: a chat completion, a response or a completion of OpenAI's, a message of Anthropic's, or an answer of Gemini's"

// Files gives the files that a policy names, whether they are there or not.
func Files(policies []File) (files []string) {
	r := newReader()
	root := r.parseAll(policies)
	if root == nil {
		return nil
	}
	spec := new(policy.Spec)
	r.root(root, spec)
	for _, d := range spec.Degrade {
		if d.Static != nil && d.Static.File != "" {
			files = append(files, beside(policies[0].Name, d.Static.File))
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Beside gives what is in files that a policy names, to tell whether it has changed.
func Beside(files []string) string {
	var all strings.Builder
	for _, file := range files {
		data, err := readSmall(file)
		fmt.Fprintf(&all, "%q %v\n", data, err)
	}
	return all.String()
}

// beside is where a file is that a policy names: beside the policy, unless its path begins with a slash.
func beside(policy, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(policy), file)
}

// statics reads the files of fixed replies.
func (r *reader) statics(spec *policy.Spec) {
	for model, d := range spec.Degrade {
		if d.Static == nil || d.Static.File == "" {
			continue
		}
		path := policy.Join(policy.Join("degrade", model), "static")
		data, err := readSmall(beside(r.parts[0].name, d.Static.File))
		if err != nil {
			r.fail(path, r.near(path), err.Error(), "")
			continue
		}
		api, stream, err := staticOf(data)
		if err != nil {
			r.fail(path, r.near(path), d.Static.File+": "+err.Error(), staticHint)
			continue
		}
		var reply bytes.Buffer
		_ = json.Compact(&reply, data) // it is JSON
		d.Static.API, d.Static.Stream, d.Static.Reply = api, stream, reply.String()
	}
}

// readSmall reads a file that is no longer than a fixed reply may be.
func readSmall(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxStatic+1))
	if err == nil && len(data) > policy.MaxStatic {
		err = fmt.Errorf("%s has more than %d bytes", path, policy.MaxStatic)
	}
	return data, err
}

// staticOf tells whose form an answer has, and gives the stream that says the same.
func staticOf(data []byte) (api, stream string, err error) {
	o, err := objectOf(data)
	if err != nil {
		return "", "", err
	}
	var out events
	switch {
	case o["object"] == "chat.completion":
		api, err = "chat", out.chat(o)
	case o["object"] == "text_completion":
		api, err = "completions", out.completion(o)
	case o["object"] == "response":
		api, err = "responses", out.response(o)
	case o["type"] == "message":
		api, err = "messages", out.message(o)
	case o["candidates"] != nil:
		api = "generate"
		out.data(o)
	default:
		err = errors.New("an answer of an unknown form")
	}
	return api, out.String(), err
}
