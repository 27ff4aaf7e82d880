// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/jsonwalk"
)

// A fanoutRequest is what POST /.weir/reserve asks for.
type fanoutRequest struct {
	provider string
	model    string
	branches int64
	input    int64 // tokens of each branch; -1: it does not say
	output   int64 // the same
	tools    []toolCalls
}

// toolCalls are the calls of one tool, of all branches together.
type toolCalls struct {
	name     string
	provider string
	calls    int64
}

// first is how many there are of what fits counts.
func (q *fanoutRequest) first() int64 {
	if q.branches > 0 {
		return q.branches
	}
	return q.tools[0].calls
}

func (q *fanoutRequest) unit() string {
	if q.branches > 0 {
		return "branches"
	}
	return "calls of the first tool"
}

// readFanout reads the body; wrong says what is wrong with it, and with which field.
func readFanout(body []byte, who *policy.WhoSpec) (q *fanoutRequest, field, wrong string) {
	q = &fanoutRequest{input: -1, output: -1}
	fail := func(f, w string) bool {
		field, wrong = f, w
		return false
	}
	text := unsafe.String(unsafe.SliceData(body), len(body))
	whole := jsonwalk.Members(text, func(key, value string) bool {
		ok := true
		switch key {
		case "model":
			q.model, ok = word(value)
		case "provider":
			q.provider, ok = word(value)
		case "branches":
			q.branches, ok = whole32(value)
		case "input_tokens":
			q.input, ok = whole32(value)
		case "max_tokens":
			q.output, ok = whole32(value)
		case "tools":
			q.tools, ok = readTools(value)
		default:
			if !names(who, key) {
				return fail(key, "Not known here: there are provider, model, branches, input_tokens, max_tokens and tools.")
			}
		}
		return ok || fail(key, "Not what is read here: strings, whole numbers, and tools as {\"NAME\":8}, at most 7.")
	})
	switch {
	case wrong != "":
	case !whole:
		wrong = "The body is no JSON object."
	case q.branches == 0 && len(q.tools) == 0:
		field, wrong = "branches", "Say how many branches, or how many calls of which tools."
	}
	return q, field, wrong
}

// readTools reads {"NAME":8} and {"NAME":{"calls":8,"provider":"NAME"}}.
func readTools(value string) (tools []toolCalls, ok bool) {
	ok = jsonwalk.Members(value, func(name, v string) bool {
		t, ok := toolCalls{}, false
		if t.name, ok = word(`"` + name + `"`); !ok || t.name == "" {
			return false
		}
		if t.calls, ok = whole32(v); !ok {
			ok = jsonwalk.Members(v, func(key, v string) (ok bool) {
				switch key {
				case "calls":
					t.calls, ok = whole32(v)
				case "provider":
					t.provider, ok = word(v)
				}
				return ok
			})
		}
		if t.calls > 0 {
			tools = append(tools, t)
		}
		return ok && len(tools) < policy.MaxLegs
	})
	return tools, ok
}

// names says whether a member of a body tells who asks.
func names(who *policy.WhoSpec, key string) bool {
	for _, sources := range [][]policy.Source{who.Environment, who.Tenant, who.User, who.Tree, who.Tool, who.Class} {
		for _, s := range sources {
			head, _, _ := strings.Cut(s.Arg, ".")
			if s.Kind == policy.FromBody && head == key {
				return true
			}
		}
	}
	return false
}

// word reads a JSON string.
func word(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	if strings.IndexByte(raw, '\\') >= 0 {
		s, err := strconv.Unquote(raw)
		return s, err == nil
	}
	return strings.Clone(raw[1 : len(raw)-1]), true
}

// whole32 reads a whole number that is not negative and has at most 32 bits.
func whole32(raw string) (int64, bool) {
	n, err := strconv.ParseUint(raw, 10, 32)
	return int64(n), err == nil
}
