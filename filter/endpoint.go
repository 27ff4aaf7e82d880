// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// What stands under /.weir on any listener is answered here and never sent on, whatever the policy's mode and providers:
// planners reserve fan-outs and ask what is left for them. Callers are identified as in any other request.

// An endpoint is what is asked for there.
type endpoint uint8

const (
	noEndpoint endpoint = iota
	otherEndpoint
	reserveEndpoint
	budgetEndpoint
)

// endpointOf tells it by the path.
func endpointOf(path string) endpoint {
	rest, ok := strings.CutPrefix(path, policy.EndpointPrefix)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '?' {
		return noEndpoint
	}
	switch rest, _, _ = strings.Cut(rest, "?"); rest {
	case "/reserve":
		return reserveEndpoint
	case "/budget":
		return budgetEndpoint
	}
	return otherEndpoint
}

// openEndpoint answers what can be answered without a body.
func (s *Stream) openEndpoint(end bool) Action {
	p := s.plugin.policy
	switch {
	case !p.Endpoints:
		return s.problem(404, "not_found", "", "The policy has endpoints: false.")
	case s.endpoint == otherEndpoint:
		return s.problem(404, "not_found", "", "There are: POST /.weir/reserve, GET /.weir/budget.")
	case s.doubled:
		return s.problem(400, policy.BadIdentity.String(), "", "An identity header came twice.")
	case s.endpoint == budgetEndpoint && s.method != "GET" && s.method != "HEAD":
		return s.problem(405, "method_not_allowed", "", "Ask with GET.", [2]string{"allow", "GET, HEAD"})
	case s.endpoint == budgetEndpoint:
		return s.tellBudget()
	case s.method != "POST":
		return s.problem(405, "method_not_allowed", "", "Ask with POST.", [2]string{"allow", "POST"})
	case s.header("content-encoding") != "":
		return s.problem(400, "bad_request", "", "Send the body without a content-encoding.")
	case s.length > maxAsked:
		return s.problem(413, "body_too_large", "", "The body has more than 16 KiB.")
	case end:
		return s.problem(400, "bad_request", "", "There is no body: send a JSON object.")
	}
	return Pause
}

// maxAsked is the longest body of a request to an endpoint.
const maxAsked = 16 << 10

// readEndpoint answers a request with a body.
func (s *Stream) readEndpoint() Action {
	if s.bytes > maxAsked {
		return s.problem(413, "body_too_large", "", "The body has more than 16 KiB.")
	}
	return s.reserveFanout(s.vm.host.RequestBody(0, int(s.bytes)))
}

// problem refuses a request to an endpoint; field is what of its body is wrong.
func (s *Stream) problem(status int, code, field, message string, headers ...[2]string) Action {
	headers = append(headers, [2]string{"x-weir-reason", code}, [2]string{"x-should-retry", "false"})
	var b object
	b.open("error")
	b.word("code", code)
	if field != "" {
		b.word("field", field)
	}
	b.word("message", message)
	b.close("}}")
	return s.tell(status, policy.Deny, b, headers...)
}

// tell answers a request to an endpoint.
func (s *Stream) tell(status int, v policy.Verdict, body []byte, headers ...[2]string) Action {
	s.phase, s.status, s.verdict = refused, status, v
	headers = append(headers, [2]string{"content-type", "application/json"}, [2]string{"cache-control", "no-store"}, [2]string{"x-weir-decision", v.String()})
	if s.method == "HEAD" {
		body = nil
	}
	s.vm.host.Reply(status, headers, body)
	s.dropHeaders()
	return Pause
}

// An object is JSON that is being written. (Its methods are not inlined: that would make the filter 7 KB larger.)
type object []byte

//go:noinline
func (o *object) put(parts ...string) {
	if n := len(*o); n == 0 {
		*o = append(*o, '{')
	} else if c := (*o)[n-1]; c != '{' && c != '[' {
		*o = append(*o, ',')
	}
	for _, p := range parts {
		*o = append(*o, p...)
	}
}

//go:noinline
func (o *object) raw(name, value string) { o.put(dialect.Quote(name), ":", value) }

//go:noinline
func (o *object) word(name, value string) { o.raw(name, dialect.Quote(value)) }

//go:noinline
func (o *object) number(name string, n int64) { o.raw(name, strconv.FormatInt(n, 10)) }

// open begins an object within.
func (o *object) open(name string) { o.raw(name, "{") }

// element begins one in a list.
func (o *object) element() { o.put("{") }

//go:noinline
func (o *object) close(with string) { *o = append(*o, with...) }
