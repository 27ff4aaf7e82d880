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
	length   int64 // the body's, as declared; -1 if it is not
	bytes    int64 // of the body that have come

	reservation policy.Reservation
	request     dialect.Request
	answer      dialect.Answer
	status      int
}

// NewStream begins a stream.
func (p *Plugin) NewStream() *Stream { return &Stream{plugin: p, vm: p.vm} }

// RequestHeaders takes the headers; end: there is no body.
func (s *Stream) RequestHeaders(end bool) (a Action) {
	defer s.guardRequest("request_headers", &a)
	s.headers = s.vm.host.RequestHeaders()
	path := s.pseudo()
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
		s.vm.countDecision(metricShadow, policy.Deny, &policy.Refusal{Reason: reason})
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
	if doubled(s.headers, s.plugin.identity) {
		return policy.BadIdentity
	}
	if s.api == dialect.Unrecognised {
		plain, _, _ := strings.Cut(path, "?")
		if ok, _ := s.provider.Unmetered.Lookup(plain); !ok {
			return policy.NotMetered
		}
	}
	return policy.None
}

// pseudo reads what is needed of the headers in one pass and gives the path.
func (s *Stream) pseudo() (path string) {
	s.length = -1
	for _, h := range s.headers {
		switch h[0] {
		case ":path":
			path = h[1]
		case ":method":
			s.method = h[1]
		case "content-length":
			if n, err := strconv.ParseInt(h[1], 10, 64); err == nil && n >= 0 {
				s.length = n
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
	return s.decide(s.vm.reader.Read(s.api, body, s.plugin.family), body)
}

// decide reserves what the request costs, or refuses it.
func (s *Stream) decide(q dialect.Request, body []byte) Action {
	p := s.plugin.policy
	ask := asker{host: s.vm.host, policy: p, headers: s.headers, body: body}
	caller := ask.caller()
	model, _ := s.provider.Models.Lookup(q.Model)
	var path policy.Path
	p.Path(&path, model, &caller)
	cost := policy.Cost{Requests: 1}
	if s.api.Metered() && s.method == "POST" {
		cost.Output = p.OutputBound(&path, model, q.Input, q.Output)
		cost.Input = q.Input
		if q.How == dialect.Length {
			cost.Input = p.GuessedInput(&path, q.Input, cost.Output)
		}
	}
	d := s.vm.ledger.Reserve(s.vm.host.Now(), &path, cost, &s.reservation)
	s.vm.countDecision(metricRequests, d.Verdict, &d.Refusal)
	if d.Shadow.Reason != policy.None {
		s.vm.countDecision(metricShadow, policy.Deny, &d.Shadow)
	}
	if d.Verdict == policy.Deny {
		return s.reply(&d.Refusal, "")
	}
	s.request = q
	s.request.Model = "" // it lies in the body's memory, which must not outlive this callback
	return s.admit(sent)
}

// admit lets the request go, without what must not leave.
func (s *Stream) admit(as phase) Action {
	s.phase = as
	h := s.vm.host
	for _, kv := range s.headers {
		switch {
		case strings.HasPrefix(kv[0], "x-weir-"), contains(s.plugin.identity, kv[0]):
			h.RemoveRequestHeader(kv[0])
		case kv[0] == "accept-encoding" && s.api.Metered():
			h.SetRequestHeader("accept-encoding", "identity") // the answer's usage must be readable
		}
	}
	s.headers = nil
	return Continue
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
