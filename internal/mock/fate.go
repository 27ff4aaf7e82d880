// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"net/http"
	"time"
)

// Where a connection breaks.
const (
	cutNone    = ""
	cutHeaders = "headers"
	cutMiddle  = "middle"
)

// fate is what is to become of one call, apart from the limits.
type fate struct {
	status int    // fail with it, if not 0
	code   string // error code of that failure
	cut    string
	delay  time.Duration
}

// fate draws from the rules, then lets the headers of the call overrule.
func (s *Server) fate(st *settings, o *overrides) fate {
	f := fate{delay: st.latency}
	if len(st.fail) > 0 {
		s.draw(st.fail, &f)
	}
	if o.latency >= 0 {
		f.delay = o.latency
	}
	if o.status != 0 {
		f.status, f.cut = o.status, cutNone
	}
	if o.code != "" {
		f.code = o.code
		if f.status == 0 {
			f.status = http.StatusTooManyRequests
		}
	}
	if o.cut != cutNone {
		f.cut = o.cut
	}
	return f
}

// draw uses one random number for each rule, so that a seed gives the same
// failures whatever the earlier rules did.
func (s *Server) draw(rules []FailRule, f *fate) {
	s.rngMu.Lock()
	defer s.rngMu.Unlock()
	for _, r := range rules {
		if s.rng.Float64() >= r.Probability {
			continue
		}
		switch failed := f.status != 0 || f.cut != cutNone; {
		case r.Kind == "slow":
			f.delay += r.Delay
		case failed:
		case r.Kind == "status":
			f.status = r.Status
		case r.Kind == "quota":
			f.status, f.code = http.StatusTooManyRequests, "insufficient_quota"
		case r.Kind == "reset":
			f.cut = cutHeaders
		case r.Kind == "cut":
			f.cut = cutMiddle
		}
	}
}
