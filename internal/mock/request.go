// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"errors"
	"fmt"
)

const (
	defaultOutput = 256
	maxChoices    = 128 // OpenAI's bound of n
)

// request is what the mock reads from an LLM request's body.
type request struct {
	model                string
	stream, includeUsage bool
	maxOutput            int64 // declared, 0 if not
	n, bestOf            int64
	textBytes            int64 // of the prompt
	tokenIDs             int64 // numbers in the prompt
	inputs               int64 // prompts, or texts to embed
	dimensions           int64
	base64               bool // embeddings wanted in base64
}

// parseRequest reads a body. Where the body was cut at the parse cap, what was
// seen before the cut stands.
func parseRequest(b []byte, cut bool) (request, error) {
	var q request
	s := &scanner{b: b}
	err := s.object(func(key []byte) error { return q.member(s, key) })
	if cut && errors.Is(err, errEnd) {
		return q, nil
	}
	// A zero byte is white space to nobody: ask for the place, not for the byte.
	if s.next(); err == nil && s.i < len(b) {
		err = errSyntax
	}
	if err != nil {
		return q, fmt.Errorf("%w (at byte %d)", err, s.i)
	}
	return q, nil
}

func (q *request) member(s *scanner, key []byte) error {
	switch string(key) {
	case "model":
		return s.stringTo(&q.model)
	case "stream":
		return s.boolTo(&q.stream)
	case "stream_options":
		return s.optionalObject(func(key []byte) error {
			if string(key) == "include_usage" {
				return s.boolTo(&q.includeUsage)
			}
			return s.skip()
		})
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		// Several may be there: the larger one binds.
		v := int64(0)
		err := s.countTo(&v)
		q.maxOutput = max(q.maxOutput, v)
		return err
	case "n":
		return s.countTo(&q.n)
	case "best_of":
		return s.countTo(&q.bestOf)
	case "dimensions":
		return s.countTo(&q.dimensions)
	case "encoding_format":
		format := ""
		err := s.stringTo(&format)
		q.base64 = format == "base64"
		return err
	}
	return q.prompt(s, key)
}

// prompt handles the members that cost input tokens.
func (q *request) prompt(s *scanner, key []byte) error {
	switch string(key) {
	case "messages", "system", "instructions", "suffix":
		return q.text(s)
	case "input", "prompt":
		return q.list(s)
	case "tools", "functions", "response_format":
		// Schemas: names and structure cost too.
		s.next()
		start := s.i
		err := s.skip()
		q.textBytes += int64(s.i - start)
		return err
	}
	return s.skip()
}

// list handles the forms of input and prompt: a string, a list of strings, a
// list of token ids, a list of such lists.
func (q *request) list(s *scanner) error {
	if s.next() != '[' {
		q.inputs = 1
		return q.text(s)
	}
	items := int64(0)
	err := s.array(func() error {
		if c := s.next(); c == '"' || c == '[' {
			items++
		}
		return q.text(s)
	})
	q.inputs = max(1, items)
	return err
}

// text adds up all text below a value.
func (q *request) text(s *scanner) error {
	switch c := s.next(); {
	case c == '"':
		_, n, err := s.str()
		q.textBytes += n
		return err
	case c == '[':
		return s.array(func() error { return q.text(s) })
	case c == '{':
		return s.object(func(key []byte) error {
			if notText(key) {
				return s.skip()
			}
			return q.text(s)
		})
	case c == '-' || c >= '0' && c <= '9':
		q.tokenIDs++
	}
	return s.skip()
}

// notText names members below a prompt whose strings are labels or binary data.
func notText(key []byte) bool {
	switch string(key) {
	case "role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "file_id", "data", "file_data",
		"url", "image_url", "media_type", "detail", "format", "signature", "cache_control":
		return true
	}
	return false
}

// inputTokens is the stated rule: a token for four bytes, rounded up.
func (q *request) inputTokens() int64 { return (q.textBytes+3)/4 + q.tokenIDs }

// reserve is the output that a provider holds back for the call.
func (q *request) reserve() int64 {
	each := q.maxOutput
	if each == 0 {
		each = defaultOutput
	}
	return saturate(saturate(each, max(q.choices(), q.bestOf)), max(1, q.inputs))
}

func (q *request) choices() int64 { return min(max(1, q.n), maxChoices) }

// saturate multiplies, up to maxTokens.
func saturate(a, b int64) int64 {
	if a > maxTokens/b {
		return maxTokens
	}
	return a * b
}
