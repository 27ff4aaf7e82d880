// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/central"
)

// serveTake answers an Envoy that asks for a call's cost on its central limits.
func (s *Server) serveTake(w http.ResponseWriter, r *http.Request) {
	var m central.Take
	if !s.readCentral(w, r, m.Decode, &m.Node) {
		return
	}
	s.mu.Lock()
	loaded := s.loaded
	s.mu.Unlock()
	if loaded == nil {
		http.Error(w, "no policy yet", http.StatusServiceUnavailable)
		return
	}
	steps := centralSteps(loaded.result.Policy, &m)
	a, err := s.config.Store.Take(r.Context(), takeOf(&m, steps, time.Now()))
	if s.centralFailed(w, err) {
		return
	}
	if a.Verdict == store.Settled {
		http.Error(w, "this call was settled before", http.StatusConflict)
		return
	}
	answer := central.Answer{Refusal: refusalOf(a.Denied, &m, steps), Shadow: refusalOf(a.Shadow, &m, steps)}
	if a.Verdict == store.Denied {
		answer.Verdict = policy.Deny
	}
	b := answer.Append(nil)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // who has gone asks again
}

// serveSettle takes down what calls cost.
func (s *Server) serveSettle(w http.ResponseWriter, r *http.Request) {
	var m central.Settles
	if !s.readCentral(w, r, m.Decode, &m.Node) {
		return
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		if _, err := s.config.Store.Settle(r.Context(), hex.EncodeToString(c.ID[:]), c.Cost); s.centralFailed(w, err) {
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// readCentral reads a message, and says whether it is one of who asks; if not it has answered.
func (s *Server) readCentral(w http.ResponseWriter, r *http.Request, decode func([]byte) error, node *string) bool {
	if s.config.Store == nil {
		http.Error(w, "this control plane has no store: start it with --store", http.StatusNotImplemented)
		return false
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, central.MaxMessage))
	if err == nil {
		err = decode(b)
	}
	if err != nil {
		http.Error(w, central.ErrMalformed.Error(), http.StatusBadRequest)
		return false
	}
	if !s.mayBe(r, *node) {
		http.Error(w, "this certificate or token is not this node's", http.StatusForbidden)
		return false
	}
	return true
}

// centralFailed answers what the store could not do, if it could not: the Envoy then does as if the control plane were away.
func (s *Server) centralFailed(w http.ResponseWriter, err error) bool {
	switch {
	case errors.Is(err, store.ErrUnavailable):
		s.storeAway(err.Error())
		http.Error(w, store.ErrUnavailable.Error(), http.StatusServiceUnavailable)
		return true
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return true
	}
	s.storeAway("")
	return false
}

// storeAway takes down whether the store answers, and logs it when that changes.
func (s *Server) storeAway(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.away == "" && why != "":
		s.log.Error("the store does not answer: no central limit is decided, and of the fleet's limits nothing more is given out soon", "store", s.config.Store, "error", why)
	case s.away != "" && why == "":
		s.log.Info("the store answers again", "store", s.config.Store)
	}
	s.away = why
}

// centralSteps are the buckets of a call whose limits are central, by the policy as it is here. A tier that has none of them here,
// for the Envoy goes by another policy than this, is held as a whole: else nobody would hold it.
func centralSteps(p *policy.Policy, m *central.Take) (steps []policy.Step) {
	var path policy.Path
	p.Path(&path, modelOf(p, m), &m.Caller)
	var all []policy.Step
	var here central.Tiers
	for _, s := range append(path.Central, path.Steps[:path.Len]...) {
		if len(s.Limit.Meters) == 0 && s.Limit.InFlight == 0 {
			continue // a pool's gate
		}
		if all = append(all, s); s.Limit.Scope == policy.Central {
			here = here.With(s.Tier)
		}
	}
	for _, s := range all {
		if !m.Tiers.Has(s.Tier) || here.Has(s.Tier) && s.Limit.Scope != policy.Central {
			continue
		}
		if path.Shadow && s.Limit.Mode == policy.Enforce {
			shadow := *s.Limit
			shadow.Mode = policy.Shadow
			s.Limit = &shadow
		}
		steps = append(steps, s)
	}
	return steps
}

// modelOf is the model whose limits apply to a call; nil if none do.
func modelOf(p *policy.Policy, m *central.Take) (model *policy.Model) {
	for _, pr := range p.Providers {
		if pr.Name != m.Provider || m.Model == "" {
			continue
		}
		model, _ = pr.Models.Lookup(m.Model)
		for _, entry := range pr.Models.Values() {
			if entry.Pattern == m.Model {
				return entry
			}
		}
	}
	return model
}

func takeOf(m *central.Take, steps []policy.Step, now time.Time) *store.Take {
	t := &store.Take{ID: hex.EncodeToString(m.ID[:]), Lease: m.Lease, Cost: m.Cost}
	for _, s := range steps {
		item := store.Item{
			Bucket: s.Tier.String() + "/" + strconv.FormatUint(uint64(s.Key), 16), InFlight: s.Limit.InFlight, Shadow: s.Limit.Mode == policy.Shadow,
		}
		for _, meter := range s.Limit.Meters {
			item.Meters = append(item.Meters, store.NewMeter(meter, now))
		}
		t.Items = append(t.Items, item)
	}
	return t
}

// refusalOf says in the policy's words what a store refused.
func refusalOf(r store.Refusal, m *central.Take, steps []policy.Step) policy.Refusal {
	if !r.Refused {
		return policy.Refusal{}
	}
	s := &steps[r.Item]
	if r.Meter < 0 {
		return policy.Refusal{
			Reason: policy.LimitExceeded, Tier: s.Tier, Dimension: policy.InFlight, Limit: s.Limit.InFlight, Need: 1,
			Remaining: r.Remaining, Wait: r.Wait,
		}
	}
	return policy.RefusalOf(s.Tier, s.Limit.Meters[r.Meter], m.Cost, r.Remaining, max(r.Wait, 0), r.Wait == store.TooLarge)
}
