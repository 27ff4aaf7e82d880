// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/tokens"
)

type estimateCmd struct {
	Dialect string `help:"The provider's, as in policies; by default what the path suggests." placeholder:"D"`
	Path    string `help:"Path that the request goes to." placeholder:"P"`
	Model   string `help:"Model, in place of the body's." placeholder:"M"`
	Text    bool   `help:"FILE is plain text: count it and nothing else."`
	JSONL   bool   `name:"jsonl" help:"FILE has a line {\"id\",\"body\"} or {\"id\",\"text\"}, body and text being strings, for each request; each is answered with its id."`
	File    string `arg:"" help:"The request's body; - is standard input."`
}

// Help is shown by weir estimate --help.
func (estimateCmd) Help() string {
	return "how says whether the count is exact (the model's own vocabulary), an estimate, or from the length only.\n\n" +
		"Examples:\n\n  weir estimate body.json\n  weir estimate --path /v1/messages --model claude-x body.json\n  echo -n 'hello world' | weir estimate --text --model gpt-4o -"
}

// An estimate is one line of output.
type estimate struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Input  int64           `json:"input_tokens"`
	Output int64           `json:"output_tokens"`
	Dial   string          `json:"dialect,omitempty"`
	Model  string          `json:"model"`
	How    string          `json:"how"`
}

func (c *estimateCmd) Run(s streams) error {
	e, err := c.estimator()
	if err != nil {
		return err
	}
	in, done, err := open(c.File, s)
	if err != nil {
		return err
	}
	defer done()
	out := json.NewEncoder(s.out)
	out.SetEscapeHTML(false)
	if c.JSONL {
		return e.lines(in, out)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", c.File, err)
	}
	if c.Text {
		return out.Encode(e.text(string(data)))
	}
	return out.Encode(e.body(data))
}

func open(file string, s streams) (io.Reader, func(), error) {
	if file == "-" {
		return s.in, func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return f, func() { f.Close() }, nil
}

// An estimator counts as the filter does, with the policy's defaults.
type estimator struct {
	reader  dialect.Reader
	set     tokens.Set
	policy  *policy.Policy
	dialect dialect.Dialect
	api     dialect.API
	model   string
}

func (c *estimateCmd) estimator() (*estimator, error) {
	d, call, err := c.call()
	if err != nil {
		return nil, err
	}
	if c.Path == "" {
		call.Model = "" // of the path that stands for one
	}
	p, err := policy.Compile(&policy.Spec{APIVersion: policy.APIVersion, Providers: map[string]policy.ProviderSpec{"openai": {Cluster: "none"}}})
	return &estimator{policy: p, dialect: d, api: call.API, model: cmp.Or(c.Model, call.Model)}, err
}

// call finds the dialect, and what the path is for in it.
func (c *estimateCmd) call() (dialect.Dialect, dialect.Call, error) {
	if c.Dialect == "" {
		for _, d := range []dialect.Dialect{dialect.OpenAI, dialect.Anthropic, dialect.Gemini, dialect.Bedrock, dialect.Cohere, dialect.Mistral, dialect.Ollama} {
			if call := d.CallOf("POST", cmp.Or(c.Path, d.Path())); call.API.Metered() {
				return d, call, nil
			}
		}
		return 0, dialect.Call{}, usagef("no dialect has an API at %s that costs tokens", c.Path)
	}
	d, ok := dialect.Parse(c.Dialect)
	if !ok || d == dialect.Generic {
		return 0, dialect.Call{}, usagef("unknown dialect %q: write openai, anthropic, gemini, bedrock, cohere, mistral or ollama", c.Dialect)
	}
	call := d.CallOf("POST", cmp.Or(c.Path, d.Path()))
	if call.API == dialect.Unrecognised {
		return 0, dialect.Call{}, usagef("%s has no API at %s", d, c.Path)
	}
	return d, call, nil
}

func (e *estimator) family(model string) tokens.Family {
	name, _ := e.policy.Families.Lookup(cmp.Or(e.model, model))
	f, _ := tokens.ParseFamily(name)
	return f
}

func (e *estimator) body(b []byte) estimate {
	e.reader.Open(e.api, b, e.family)
	q := e.reader.Count()
	output := q.Output
	if output < 0 {
		output = e.policy.Output
	}
	return estimate{Input: q.Input, Output: output, Dial: e.dialect.String(), Model: cmp.Or(e.model, q.Model), How: q.How.String()}
}

func (e *estimator) text(text string) estimate {
	f := e.family("gpt-4o")
	how := dialect.Estimate
	if f.Exact() {
		how = dialect.Exact
	}
	return estimate{Input: e.set.Count(f, text), Model: cmp.Or(e.model, "gpt-4o"), How: how.String()}
}

// lines answers each line of a JSONL file.
func (e *estimator) lines(in io.Reader, out *json.Encoder) error {
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			r, err := e.line(line)
			if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
			if err := out.Encode(r); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line answers a line {"id","body"} or {"id","text"}, both strings.
func (e *estimator) line(line []byte) (r estimate, err error) {
	var q struct {
		ID         json.RawMessage
		Body, Text json.RawMessage
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return r, fmt.Errorf("no JSON object: %w", err)
	}
	var s string
	switch {
	case q.Body != nil && q.Text != nil:
		return r, errors.New("it has both body and text")
	case q.Body != nil:
		if err := json.Unmarshal(q.Body, &s); err != nil {
			return r, errors.New("body is no string: write the request's body as one")
		}
		r = e.body([]byte(s))
	case q.Text != nil:
		if err := json.Unmarshal(q.Text, &s); err != nil {
			return r, errors.New("text is no string")
		}
		r = e.text(s)
	default:
		return r, errors.New("it has neither body nor text")
	}
	r.ID = q.ID
	return r, nil
}
