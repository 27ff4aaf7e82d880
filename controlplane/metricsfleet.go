// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/xds"
)

func (c collector) collectFleet(f *fleet.Status, send func(string, float64, ...string)) {
	send("fleet_store_up", number(f.Store == ""))
	send("fleet_quotas", float64(f.Total))
	send("fleet_reports_total", float64(f.Counters.Reports))
	send("fleet_pushes_total", float64(f.Counters.Pushes))
	send("fleet_pushed_bytes_total", float64(f.Counters.Bytes))
	send("fleet_grants_total", float64(f.Counters.Grants))
	shares := map[string]int{"acknowledged": 0, "behind": 0, "silent": 0}
	for i := range f.Quotas {
		for _, h := range f.Quotas[i].Holders {
			shares[stateOf(&h)]++
		}
	}
	for state, n := range shares {
		send("fleet_shares", float64(n), state)
	}
	for _, q := range namedQuotas(f.Quotas) {
		c.collectQuota(q, send)
	}
}

func stateOf(h *fleet.Holder) string {
	switch {
	case h.Silent:
		return "silent"
	case h.Behind:
		return "behind"
	}
	return "acknowledged"
}

// namedQuotas are those that the policy names: of the others there may be as many as there are callers. Of two fixed windows of
// one limit, the later.
func namedQuotas(all []fleet.Quota) map[[4]string]*fleet.Quota {
	m := map[[4]string]*fleet.Quota{}
	for i := range all {
		if q := &all[i]; q.Named {
			m[[4]string{q.Quota, q.Tier, q.Dimension, q.Window}] = q
		}
	}
	return m
}

func (c collector) collectQuota(q *fleet.Quota, send func(string, float64, ...string)) {
	labels := []string{q.Quota, q.Tier, q.Dimension, q.Window}
	send("fleet_quota_limit", float64(q.Limit), labels...)
	send("fleet_quota_granted", float64(q.Granted), labels...)
	if use := c.board.use(time.Now(), q); use.Known() {
		send("fleet_quota_used", float64(use), labels...)
	}
	if q.Rate > 0 {
		send("fleet_quota_rate_ratio", q.Rate, labels...)
	}
	if q.Seen { // else nobody says
		send("fleet_quota_waiting", float64(q.Queued), labels...)
		send("fleet_quota_denied_total", float64(q.Denied), labels...)
		send("fleet_quota_answered_total", float64(q.Answered), labels...)
		send("fleet_quota_rejected_total", float64(q.Rejected), labels...)
	}
}

// count counts the nodes by state.
func count(st Status) map[string]int {
	n := map[string]int{"current": 0, "behind": 0, "rejecting": 0, "refused": 0}
	for i := range st.Nodes {
		n[st.state(&st.Nodes[i])]++
	}
	return n
}

// state says in a word what a node made of the policy that is served.
func (st *Status) state(n *xds.Status) string {
	if n.Refused != "" {
		return "refused"
	}
	for i := range n.Types {
		if n.Types[i].Rejected() {
			return "rejecting"
		}
	}
	if st.Policy != nil && n.Policy == st.Policy.Version {
		return "current"
	}
	return "behind"
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
