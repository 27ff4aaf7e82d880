// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"

	"github.com/weirproxy/weir/policy"
)

// A logged request is what is kept of it for its line, if the policy wants one.
type logged struct {
	id      string // x-request-id
	model   string
	caller  policy.Caller // if the policy wants it named
	attempt int64
	refusal policy.Refusal
	shadow  policy.Refusal
	waited  int64 // ns
	charged policy.Cost
	source  policy.ChargeSource
	ending  policy.Ending
}

// logs says whether anything is to be written of the request.
func (s *Stream) logs() bool { return s.plugin.policy.Log.Any() }

// noteHeaders keeps what of the headers is not there any more when the line is written.
func (s *Stream) noteHeaders() {
	if !s.logs() {
		return
	}
	s.logged.id = strings.Clone(s.header("x-request-id"))
	s.logged.attempt = max(number(s.header("x-stainless-retry-count"))+1, number(s.header("x-envoy-attempt-count")))
}

// noteCaller keeps who asks.
//
//go:noinline
func (s *Stream) noteCaller(ask *asker) {
	if !s.plugin.policy.Log.Caller {
		return
	}
	c := ask.named()
	for _, name := range []*string{&c.Environment, &c.Tenant, &c.User, &c.Tool} {
		*name = strings.Clone(*name) // it may lie in the body's memory
	}
	s.logged.caller = c
}

// number reads one of the few digits that attempts have; 0 if it is none.
func number(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0
	}
	return int64(n)
}

// writeLog writes the line of a request that is over, and tells Envoy's access log, which is written next.
func (s *Stream) writeLog() {
	if !s.logs() {
		return
	}
	p, h := &s.plugin.policy.Log, s.vm.host
	level := p.Admit
	if s.logged.refusal.Reason != policy.None {
		level = p.Deny
	}
	if level == policy.LogOff && !p.Access {
		return
	}
	f := &s.vm.fields
	*f = (*f)[:0]
	s.fields(f)
	if p.Access {
		for _, f := range *f {
			value := f.value
			if byCaller(f.name) {
				value = escaped(value)
			}
			h.SetProperty("weir."+f.name, value)
		}
	}
	if level != policy.LogOff {
		h.Log(logLevels[level], f.line())
	}
}

var logLevels = [...]Level{policy.LogDebug: Debug, policy.LogInfo: Info, policy.LogWarn: Warn}

// fields are what a line says.
type fields []struct{ name, value string }

//go:noinline
func (f *fields) word(name, value string) {
	*f = append(*f, struct{ name, value string }{name, value})
}

//go:noinline
func (f *fields) count(name string, n int64) { f.word(name, strconv.FormatInt(n, 10)) }

// line is logfmt. What callers have written is quoted, so that none can forge a line.
func (f fields) line() string {
	b := []byte("weir")
	for _, f := range f {
		b = append(append(append(b, ' '), f.name...), '=')
		if byCaller(f.name) {
			b = strconv.AppendQuoteToASCII(b, f.value[:min(len(f.value), maxLogged)])
		} else {
			b = append(b, f.value...)
		}
	}
	return string(b)
}

// byCaller says whether a field has what a caller has written.
func byCaller(name string) bool {
	switch name {
	case "request_id", "model", "environment", "tenant", "user", "tool":
		return true
	}
	return false
}

// escaped is what a caller has written, for a line that Envoy writes: in a log of text Envoy puts it there as it is, and a line break
// would begin another line.
func escaped(s string) string {
	q := strconv.Quote(s[:min(len(s), maxLogged)])
	return q[1 : len(q)-1]
}

// maxLogged bounds what of a caller's words is logged, in bytes.
const maxLogged = 128

// fields are what there is to say of a request, in tokens and ms.
func (s *Stream) fields(f *fields) {
	l := &s.logged
	f.word("decision", s.decision())
	if r := &l.refusal; r.Reason != policy.None {
		f.word("reason", r.Reason.String())
		if r.Limit > 0 {
			f.word("tier", r.Tier.String())
			f.word("dimension", r.Dimension.String())
			f.count("limit", r.Limit)
			f.count("need", r.Need)
			if r.Reason != policy.RequestTooLarge { // no wait helps
				f.count("wait_ms", r.Wait.Milliseconds())
			}
		}
		if s.verdict == policy.Admit {
			s.status = r.Reason.Status()
		}
	}
	if r := &l.shadow; r.Reason != policy.None {
		f.word("shadow_reason", r.Reason.String())
		f.word("shadow_tier", r.Tier.String())
		f.word("shadow_dimension", r.Dimension.String())
	}
	f.count("status", int64(s.status))
	f.word("request_id", l.id)
	for _, who := range [...][2]string{{"environment", l.caller.Environment}, {"tenant", l.caller.Tenant}, {"user", l.caller.User}, {"tool", l.caller.Tool}} {
		if who[1] != "" {
			f.word(who[0], who[1])
		}
	}
	f.count("attempt", max(l.attempt, 1))
	f.count("waited_ms", l.waited/1e6)
	if s.provider != nil {
		f.word("provider", s.provider.Name)
	}
	f.word("model", l.model)
	if s.class.Name != "" {
		f.word("class", s.class.Name)
	}
	if s.phase == settled {
		c := &s.reservation.Cost
		f.word("how", s.request.How.String())
		f.count("input", c.Input)
		f.count("output", c.Output)
		f.word("ending", l.ending.String())
		f.word("source", l.source.String())
		f.count("charged_input", l.charged.Input)
		f.count("charged_output", l.charged.Output)
	}
}

// decision is what became of a request.
func (s *Stream) decision() string {
	switch {
	case s.verdict != policy.Admit:
		return s.verdict.String()
	case s.logged.refusal.Reason != policy.None:
		return policy.Deny.String()
	case s.phase == reading, s.phase == waiting:
		return "left" // before there was one
	}
	return policy.Admit.String()
}
