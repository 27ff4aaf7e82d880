// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/history"
	"github.com/weirproxy/weir/controlplane/xds"
)

// A View is what the page is told every two seconds. What is not known is null.
type View struct {
	At       time.Time    `json:"at"`
	Ready    bool         `json:"ready"`
	NotReady string       `json:"not_ready,omitempty"`
	Started  time.Time    `json:"started"`
	Listen   string       `json:"listen"`
	File     string       `json:"file"`
	Policy   *PolicyInfo  `json:"policy"`
	Problem  *FileProblem `json:"problem,omitempty"`
	Access   AccessInfo   `json:"access"`
	Switch

	Store      string `json:"store,omitempty"`
	StoreAway  string `json:"store_away,omitempty"`
	FleetStore string `json:"fleet_store_error,omitempty"`
	Learning   bool   `json:"learning"`

	Lead    Leadership `json:"lead"`
	Unknown string     `json:"fleet_unknown,omitempty"` // why nothing is known of limits here

	States map[string]int `json:"states"` // Envoys by what they made of the policy
	Envoys []EnvoyRow     `json:"envoys"` // no more than maxRows
	Total  int            `json:"envoys_total"`

	Quotas      []QuotaRow      `json:"quotas"`
	QuotasTotal int             `json:"quotas_total"`
	Changes     []fleet.Change  `json:"changes"`
	Reports     int64           `json:"reports"` // of Envoys, to the control plane that leads
	Denials     []fleet.Denied  `json:"denials"`
	Reasons     []fleet.Denied  `json:"reasons"`
	Waits       []fleet.Waiting `json:"waits"`
	Estimates   []Estimate      `json:"estimates"`
	Local       *LocalView      `json:"local"` // null: no Envoy of this machine is asked
}

// maxRows bounds the Envoys of a view. Those that something is wrong with come first.
const maxRows = 200

// An EnvoyRow is one Envoy.
type EnvoyRow struct {
	xds.Status
	State  string `json:"state"`
	Shares int    `json:"shares"` // limits of the view of which it has some
	Silent int    `json:"silent"` // of them, about which it has not reported for too long
	Behind int    `json:"behind"` // of them, whose newest grant it has not acknowledged
	Lease  int64  `json:"lease_ms"`
	Whole  bool   `json:"whole,omitempty"` // it has limits for itself
}

// A QuotaRow is one limit, without who holds it.
type QuotaRow struct {
	fleet.Quota
	Use    history.Number `json:"use"`    // units in its window
	Recent history.Number `json:"recent"` // calls denied in the time that is remembered
	Envoys int            `json:"envoys"` // that have some of it
}

// view puts together what the page shows.
func (b *board) view(now time.Time, st *Status) *View {
	v := &View{
		At: now, Ready: st.Ready, NotReady: st.NotReady, Started: st.Started, Listen: st.Listen, File: st.File, Policy: st.Policy,
		Problem: st.Problem, Access: st.Access, Switch: st.Switch, Store: st.Store, StoreAway: st.StoreAway, FleetStore: st.Fleet.Store, Learning: st.Fleet.Learning,
		Lead: st.Lead, Unknown: st.Unknown,
		States: count(*st), Total: len(st.Nodes), QuotasTotal: st.Fleet.Total, Changes: st.Fleet.Changes, Denials: st.Fleet.Denials, Reasons: st.Fleet.Reasons, Reports: st.Fleet.Counters.Reports, Waits: st.Fleet.Waits,
		Envoys: envoyRows(st), Quotas: []QuotaRow{}, Estimates: b.estimates.rows(b.server.policy()),
	}
	for i := range st.Fleet.Quotas {
		v.Quotas = append(v.Quotas, b.row(now, &st.Fleet.Quotas[i]))
	}
	if b.server.config.Admin != nil {
		v.Local = b.local.view()
	}
	return v
}

func (b *board) row(now time.Time, q *fleet.Quota) QuotaRow {
	r := QuotaRow{Quota: *q, Use: b.use(now, q), Recent: history.Unknown, Envoys: len(q.Holders)}
	if q.Seen {
		r.Recent = b.counters.Grown("denied/"+q.ID, time.Time{})
	}
	r.Holders = nil
	return r
}

// envoyRows are the Envoys, those first that something is wrong with.
func envoyRows(st *Status) []EnvoyRow {
	rows := make([]EnvoyRow, len(st.Nodes))
	at := map[string]*EnvoyRow{}
	for i := range st.Nodes {
		rows[i] = EnvoyRow{Status: st.Nodes[i], State: st.state(&st.Nodes[i])}
		at[rows[i].ID] = &rows[i]
	}
	for i := range st.Fleet.Quotas {
		for _, h := range st.Fleet.Quotas[i].Holders {
			r := at[h.Node]
			switch {
			case r == nil:
			case st.Fleet.Quotas[i].Kind == fleet.Whole:
				r.Whole = true
			default:
				r.Shares++
				r.Silent += int(number(h.Silent))
				r.Behind += int(number(h.Behind))
				r.Lease = max(r.Lease, h.Lease)
			}
		}
	}
	wrong := map[string]int{"refused": 0, "rejecting": 1, "behind": 2, "current": 3}
	slices.SortStableFunc(rows, func(a, b EnvoyRow) int { return cmp.Compare(wrong[a.State], wrong[b.State]) })
	return rows[:min(len(rows), maxRows)]
}
