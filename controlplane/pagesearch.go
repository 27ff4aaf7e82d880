// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/policy"
)

// A Search is what is known of a tenant, a user or a request tree. The control plane knows most of them by a keyed hash of
// their names alone: so it hashes what was typed.
type Search struct {
	Tier   string     `json:"tier"`
	Key    string     `json:"key"`            // what it is known by
	Note   string     `json:"note,omitempty"` // what may be in the way of finding something
	Quotas []QuotaRow `json:"quotas"`

	Denials []fleet.Denied `json:"denials"`
}

// serveSearch looks for the narrowest of tenant, user and tree that is asked for.
func (s *Server) serveSearch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := s.policy()
	if p == nil {
		http.Error(w, "no policy yet", http.StatusServiceUnavailable)
		return
	}
	tier, key, note := searchKey(p, q.Get("tenant"), q.Get("user"), q.Get("tree"))
	if key == 0 {
		http.Error(w, note, http.StatusBadRequest)
		return
	}
	found, denied, err := []fleet.Quota(nil), []fleet.Denied{}, errNotLeading
	if c := s.leading(); c != nil {
		found, denied, err = c.Find(r.Context(), tier, key)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer, now := Search{Tier: tier.String(), Key: fmt.Sprintf("#%016x", uint64(key)), Note: note, Quotas: []QuotaRow{}, Denials: denied}, time.Now()
	for i := range found {
		row := s.board.row(now, &found[i])
		row.Holders = found[i].Holders
		answer.Quotas = append(answer.Quotas, row)
	}
	s.answerJSON(w, answer)
}

// searchKey (RATIONALE.md, "Why does the search hash?") hashes names as the filter does. Where the policy has no limit that tells callers of a tier apart, the filter leaves
// their names out. Key 0: note says what is wrong.
func searchKey(p *policy.Policy, tenant, user, tree string) (t policy.Tier, key policy.Key, note string) {
	if tenant+user+tree == "" {
		return 0, 0, "write the name of a tenant, a user or a tree"
	}
	names := map[policy.Tier]string{policy.TierTenant: tenant, policy.TierUser: user, policy.TierTree: tree}
	t = policy.TierTenant
	for _, narrow := range []policy.Tier{policy.TierUser, policy.TierTree} {
		if names[narrow] != "" {
			t = narrow
		}
	}
	if !p.Uses(t) {
		note = fmt.Sprintf("The policy has no limits of the tier %s.", t)
	}
	for tier := range names {
		switch {
		case tier == policy.TierTree:
		case !p.Uses(tier):
			names[tier] = ""
		default:
			names[tier] = cmp.Or(names[tier], policy.Unknown)
		}
	}
	h := &p.Hasher
	a, b, c := h.Shorten(names[policy.TierTenant]), h.Shorten(names[policy.TierUser]), h.Shorten(tree)
	switch t {
	case policy.TierUser:
		return t, h.Key(t, a, b), note
	case policy.TierTree:
		return t, h.Key(t, a, b, c), note
	}
	return t, h.Key(t, a), note
}
