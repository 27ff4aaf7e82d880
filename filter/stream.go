// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// A phase is how far a stream has come. It only ever moves on.
type phase uint8

const (
	reading phase = iota // headers are held, the body is being read
	refused              // answered here: it never leaves
	passing              // sent, and nothing is held for it
	sent                 // sent, with a reservation
	settled              // the reservation is settled
	done                 // all is over
)

// A Stream is one request and its answer.
type Stream struct {
	plugin *Plugin
	vm     *VM
	phase  phase

	headers  [][2]string
	method   string
	provider *policy.Provider
	dialect  dialect.Dialect
	api      dialect.API
	identity uint32 // which of the identity headers came
	doubled  bool   // one of them came twice
	length   int64  // the body's, as declared; -1 if it is not
	bytes    int64  // of the body that have come

	reservation policy.Reservation
	request     dialect.Request
	answer      dialect.Answer
	status      int
}

// NewStream begins a stream. Its memory is that of one that is done, if there is one.
func (p *Plugin) NewStream() *Stream {
	v := p.vm
	if n := len(v.free); n > 0 {
		s := v.free[n-1]
		v.free = v.free[:n-1]
		*s = Stream{plugin: p, vm: v}
		return s
	}
	return &Stream{plugin: p, vm: v}
}

// maxFree bounds the streams that are kept for another use.
const maxFree = 256

// RequestHeaders takes the headers; end: there is no body.
func (s *Stream) RequestHeaders(end bool) (a Action) {
	defer s.guardRequest("request_headers", &a)
	s.headers = s.vm.host.RequestHeaders()
	path := s.scanHeaders()
	if s.plugin.policy.Mode == policy.Off {
		return s.admit(passing)
	}
	var rest string
	if s.provider, rest = s.plugin.policy.ProviderOf(path); s.provider == nil {
		return s.refuse(policy.UnknownPrefix, s.plugin.prefixes())
	}
	s.dialect = s.plugin.providers[s.provider]
	s.api = s.apiOf(rest)
	if reason := s.objection(rest); reason != policy.None {
		if s.plugin.policy.Mode != policy.Shadow {
			return s.refuse(reason, "")
		}
		s.vm.countDenied(metricShadow, &policy.Refusal{Reason: reason})
	}
	switch {
	case end || !s.api.Metered():
		return s.decide(dialect.Request{}, nil)
	case s.length > s.plugin.policy.Parse || !s.readable():
		return s.decide(dialect.ByLength(max(s.length, 0)), nil)
	}
	return Pause
}

// apiOf tells which API the request is for. An upgrade is none: what passes through it cannot be read.
func (s *Stream) apiOf(path string) dialect.API {
	if s.dialect != dialect.Generic && (s.header("upgrade") != "" || s.method == "CONNECT") {
		return dialect.Unrecognised
	}
	return s.dialect.APIOf(s.method, path)
}

// objection says why a request is refused whatever its cost.
func (s *Stream) objection(path string) policy.Reason {
	if s.doubled {
		return policy.BadIdentity
	}
	if dialect.Climbs(path) {
		return policy.BadPath
	}
	if s.api == dialect.Unrecognised {
		plain, _, _ := strings.Cut(path, "?")
		if ok, _ := s.provider.Unmetered.Lookup(plain); !ok {
			return policy.NotMetered
		}
	}
	return policy.None
}

// scanHeaders finds what is needed in one pass and gives the path.
func (s *Stream) scanHeaders() (path string) {
	s.length = -1
	for _, h := range s.headers {
		switch name := h[0]; name {
		case ":path":
			path = h[1]
		case ":method":
			s.method = h[1]
		case "content-length":
			if n, err := strconv.ParseInt(h[1], 10, 64); err == nil && n >= 0 {
				s.length = n
			}
		default:
			if i := indexOf(s.plugin.identity, name); i >= 0 {
				s.doubled = s.doubled || s.identity&(1<<i) != 0
				s.identity |= 1 << i
			}
		}
	}
	return path
}

func (s *Stream) header(name string) string {
	for _, h := range s.headers {
		if h[0] == name {
			return h[1]
		}
	}
	return ""
}

// identityHeader is a header that names a tier. Most requests have few of those that the policy knows.
func (s *Stream) identityHeader(name string) string {
	if s.identity == 0 || s.identity&(1<<indexOf(s.plugin.identity, name)) == 0 {
		return ""
	}
	return strings.TrimSpace(s.header(name))
}

// readable says whether the body is JSON in plain form, as far as the headers tell.
func (s *Stream) readable() bool {
	if e := s.header("content-encoding"); e != "" && e != "identity" {
		return false
	}
	t := s.header("content-type")
	return t == "" || strings.Contains(t, "json") || strings.HasPrefix(t, "text/")
}

// RequestBody takes the body up to size bytes; end: it is complete.
func (s *Stream) RequestBody(size int, end bool) (a Action) {
	defer s.guardRequest("request_body", &a)
	if s.phase != reading {
		s.bytes += int64(size) // a chunk
		return Action(s.phase == refused)
	}
	s.bytes = int64(size) // all that is buffered
	switch {
	case s.bytes > s.plugin.policy.Parse:
		return s.decide(dialect.ByLength(max(s.length, s.bytes)), nil)
	case end:
		return s.decideBody()
	}
	return Pause
}

// RequestTrailers takes the end of a body that has trailers, which never says that it is complete.
func (s *Stream) RequestTrailers() (a Action) {
	defer s.guardRequest("request_trailers", &a)
	if s.phase != reading {
		return Action(s.phase == refused)
	}
	return s.decideBody()
}

// decideBody decides on a body that is complete and buffered.
func (s *Stream) decideBody() Action {
	body := s.vm.host.RequestBody(int(s.bytes))
	return s.decide(s.vm.reader.Open(s.api, body, s.plugin.family), s.vm.reader.Member)
}

// decide reserves what the request costs, or refuses it. member reads the body, if it was opened.
func (s *Stream) decide(q dialect.Request, member func(string) string) Action {
	p := s.plugin.policy
	ask := asker{host: s.vm.host, policy: p, stream: s, member: member}
	caller := ask.caller()
	model, _ := s.provider.Models.Lookup(q.Model)
	var path policy.Path
	p.Path(&path, model, &caller)
	now := s.vm.host.Now()
	if q.How == dialect.Bound {
		if s.saysUsage(&q) && s.vm.ledger.ReserveAmple(now, &path, s.cost(&path, model, &q), &s.reservation) {
			s.vm.countAdmitted()
			return s.send(q)
		}
		q = s.vm.reader.Count()
	}
	d := s.vm.ledger.Reserve(now, &path, s.cost(&path, model, &q), &s.reservation)
	if d.Shadow.Reason != policy.None {
		s.vm.countDenied(metricShadow, &d.Shadow)
	}
	if d.Verdict == policy.Deny {
		s.vm.countDenied(metricRequests, &d.Refusal)
		return s.reply(&d.Refusal, "")
	}
	s.vm.countAdmitted()
	return s.send(q)
}

// saysUsage says whether the answer is going to say its usage, so that it does not matter what was counted before.
func (s *Stream) saysUsage(q *dialect.Request) bool {
	return !q.Stream || q.IncludeUsage || s.api == dialect.Messages || s.api == dialect.Responses
}

// cost is what is reserved for a request.
func (s *Stream) cost(path *policy.Path, m *policy.Model, q *dialect.Request) policy.Cost {
	c := policy.Cost{Requests: 1}
	if !s.api.Metered() || s.method != "POST" {
		return c
	}
	c.Input = q.Input
	c.Output = s.plugin.policy.OutputBound(path, m, q.Input, q.Output)
	if q.How == dialect.Length {
		c.Input = s.plugin.policy.GuessedInput(path, q.Input, c.Output)
	}
	return c
}

// send lets a request go that was admitted.
func (s *Stream) send(q dialect.Request) Action {
	q.Model = "" // it lies in the body's memory, which must not outlive this callback
	s.request = q
	return s.admit(sent)
}

// admit lets the request go, without what must not leave.
func (s *Stream) admit(as phase) Action {
	s.phase = as
	h := s.vm.host
	for i, name := range s.plugin.identity {
		if s.identity&(1<<i) != 0 {
			h.RemoveRequestHeader(name)
		}
	}
	for _, kv := range s.headers {
		switch {
		case strings.HasPrefix(kv[0], "x-weir-"), strings.HasPrefix(kv[0], "x-envoy-"):
			// With x-envoy-retry-on a caller would make Envoy send what was admitted once several times.
			h.RemoveRequestHeader(kv[0])
		case kv[0] == "accept-encoding" && s.api.Metered():
			h.SetRequestHeader("accept-encoding", "identity") // the answer's usage must be readable
		}
	}
	s.headers = nil
	return Continue
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}
