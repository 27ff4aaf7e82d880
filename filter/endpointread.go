// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

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
	text := string(body) // what is read of it outlives the callback
	v := jsonwalk.Parse(text)
	if jsonwalk.Invalid(text) >= 0 || !v.IsObject() {
		return q, "", "The body is no JSON object."
	}
	v.ForEach(func(key string, v jsonwalk.Value) bool {
		ok := true
		switch key {
		case "model":
			q.model, ok = v.Str(), v.Type() == jsonwalk.String
		case "provider":
			q.provider, ok = v.Str(), v.Type() == jsonwalk.String
		case "branches":
			ok = whole(v, &q.branches)
		case "input_tokens":
			ok = whole(v, &q.input)
		case "max_tokens":
			ok = whole(v, &q.output)
		case "tools":
			ok = q.readTools(v)
		default:
			if !names(who, key) {
				field, wrong = key, "Not known here: there are provider, model, branches, input_tokens, max_tokens and tools."
			}
		}
		if !ok {
			field, wrong = key, `Not what is read here: strings, whole numbers, and at most 7 tools as {"NAME":8}.`
		}
		return wrong == ""
	})
	if wrong == "" && q.branches == 0 && len(q.tools) == 0 {
		field, wrong = "branches", "Say how many branches, or how many calls of which tools."
	}
	return q, field, wrong
}

// readTools reads {"NAME":8} and {"NAME":{"calls":8,"provider":"NAME"}}.
func (q *fanoutRequest) readTools(v jsonwalk.Value) (ok bool) {
	q.tools, ok = nil, v.IsObject()
	v.ForEach(func(name string, v jsonwalk.Value) bool {
		t := toolCalls{name: name}
		calls := v
		if v.IsObject() {
			calls, t.provider = v.Get("calls"), v.Get("provider").Str()
		}
		ok = ok && whole(calls, &t.calls) && name != "" && len(q.tools) < policy.MaxLegs-1
		if t.calls > 0 {
			q.tools = append(q.tools, t)
		}
		return ok
	})
	return ok
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

// whole reads a whole number that is not negative and has at most 32 bits.
func whole(v jsonwalk.Value, to *int64) bool {
	n, err := strconv.ParseUint(string(v), 10, 32)
	*to = int64(n)
	return err == nil
}
