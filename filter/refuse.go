// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// refuse counts a refusal that has nothing to do with a limit, and answers with it.
func (s *Stream) refuse(reason policy.Reason, detail string) Action {
	return s.turnDown(&policy.Refusal{Reason: reason}, detail)
}

// reply answers the caller in its own dialect. The request never leaves.
func (s *Stream) reply(r *policy.Refusal, detail string) Action {
	if s.verdict == policy.Spilled {
		s.dialect, s.call.API = s.from, s.fromAPI // the caller knows nothing of where it went
	}
	s.phase, s.verdict = refused, policy.Admit
	s.logged.refusal = *r
	p := s.dialect.Refuse(&dialect.Refusal{Refusal: *r, API: s.call.API, RetryAfter: retryAfter(r), Now: time.Unix(0, s.vm.host.Wall()), Detail: detail})
	if s.method == "HEAD" {
		p.Body = nil
	}
	p.Headers = append(p.Headers, s.explained()...)
	s.vm.host.Reply(p.Status, p.Headers, p.Body)
	s.dropHeaders()
	return Pause
}

// retryAfter is what a caller is told to wait: the exact wait, and more at random, so that all who were refused at once do
// not come back at once. 0: waiting does not help.
func retryAfter(r *policy.Refusal) time.Duration {
	switch r.Reason {
	case policy.LimitExceeded, policy.QuotaExhausted, policy.QueueFull, policy.QueueTimeout, policy.ProviderCooling:
		spread := max(r.Wait/5, time.Second)
		return r.Wait + time.Duration(rand.Int64N(int64(spread)))
	case policy.CASContention, policy.Internal, policy.NoShare:
		return time.Second
	}
	return 0
}

// prefixes says which paths there are, to who asks for another.
func (p *Plugin) prefixes() string {
	var names []string
	for _, pr := range p.policy.Providers {
		names = append(names, pr.Prefix+"/")
	}
	return "There are: " + strings.Join(names, " ")
}

// guardRequest recovers from a panic before a request has left: it is answered with 503, or passes if the policy says so
// and the emergency bucket allows. Use: defer s.guardRequest(name, &action).
func (s *Stream) guardRequest(callback string, a *Action) {
	r := recover()
	if r == nil {
		return
	}
	s.vm.report(callback, r)
	*a = s.fail()
}

// fail gives a stream that panicked its end. It must not panic.
func (s *Stream) fail() (a Action) {
	defer func() {
		if recover() != nil {
			a = Pause // the host itself fails: the stream ends by its idle timeout
		}
	}()
	s.abandon()
	s.leave()
	switch s.phase {
	case refused:
		return Pause
	case passing, sent, settled:
		return Continue
	}
	s.vm.ledger.Settle(s.vm.host.Now(), &s.reservation, policy.Cost{})
	if s.plugin.policy.FailOpen && s.endpoint == noEndpoint && s.vm.emergency.take(s.vm.host.Now()) {
		return s.admit(passing)
	}
	return s.refuse(policy.Internal, "")
}
