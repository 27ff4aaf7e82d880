// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/xds"
)

// A family is a metric. docs/reference.md explains each; a test compares.
type family struct {
	name, help string
	counter    bool
	labels     []string
}

var quotaLabels = []string{"quota", "tier", "dimension", "window"}

var families = []family{
	{"weir_controlplane_ready", "1 if ready.", false, nil},
	{"weir_controlplane_policy_broken", "1 if the policy file has errors, so that the last good one stays.", false, nil},
	{"weir_controlplane_policy_info", "The policy that is served.", false, []string{"version", "mode"}},
	{"weir_controlplane_policy_loaded_timestamp_seconds", "When it was loaded.", false, nil},
	{"weir_controlplane_policy_loads_total", "Policies that were read.", true, []string{"result"}},
	{"weir_controlplane_credentials_broken", "1 if certificates or tokens have errors, so that the old ones stay.", false, nil},
	{"weir_controlplane_certificate_expires_timestamp_seconds", "When the certificate in force ends.", false, nil},
	{"weir_controlplane_store_up", "1 if the store answered when it was last asked.", false, nil},
	{"weir_controlplane_nodes", "Envoys by what they made of the newest policy.", false, []string{"state"}},
	{"weir_controlplane_nacks_total", "Configurations that an Envoy has rejected.", true, []string{"type"}},
	{"weir_controlplane_watchers", "Pages that are open.", false, nil},
	{"weir_controlplane_leads", "1 if this control plane hands out the limits of the fleet.", false, nil},
	{"weir_controlplane_replicas", "Control planes that have been heard of, this one with them.", false, nil},
	{"weir_fleet_epoch", "The newest controller of the fleet that has been heard of.", false, nil},
	{"weir_fleet_store_up", "1 if what outlives the control plane could be saved.", false, nil},
	{"weir_fleet_quotas", "Limits that somebody uses.", false, nil},
	{"weir_fleet_reports_total", "Messages of nodes.", true, nil},
	{"weir_fleet_pushes_total", "Documents sent to nodes.", true, nil},
	{"weir_fleet_pushed_bytes_total", "Bytes in documents sent to nodes.", true, nil},
	{"weir_fleet_grants_total", "Grants of shares and tokens.", true, nil},
	{"weir_fleet_shares", "Shares of limits by what their nodes last said.", false, []string{"state"}},
	{"weir_fleet_quota_limit", "Units of the window that are in force of a limit.", false, quotaLabels},
	{"weir_fleet_quota_used", "Units of the window that count as spent.", false, quotaLabels},
	{"weir_fleet_quota_granted", "Units of the window that nodes may spend.", false, quotaLabels},
	{"weir_fleet_quota_rate_ratio", "What a limit that follows its provider's answers has come down to, of the policy's.", false, quotaLabels},
	{"weir_fleet_quota_waiting", "Calls that wait.", false, quotaLabels},
	{"weir_fleet_quota_denied_total", "Calls that were denied.", true, quotaLabels},
	{"weir_fleet_quota_answered_total", "Calls that the provider has answered.", true, quotaLabels},
	{"weir_fleet_quota_rejected_total", "Of them, those that it rejected for this limit.", true, quotaLabels},
	{"weir_fleet_input_ratio", "What a provider counts of input beside what weir counts before it is put right.", false, []string{"model"}},
	{"weir_fleet_input_spread_ratio", "Half of the answers were within this share of that.", false, []string{"model"}},
}

// A collector gives the metrics of a Server as they are when somebody asks, so that nothing has to be kept up to date.
type collector struct {
	*Server
	descs map[string]*prometheus.Desc
	types map[string]prometheus.ValueType
}

func newCollector(s *Server) collector {
	c := collector{s, map[string]*prometheus.Desc{}, map[string]prometheus.ValueType{}}
	for _, f := range families {
		c.descs[f.name] = prometheus.NewDesc(f.name, f.help, f.labels, nil)
		if c.types[f.name] = prometheus.GaugeValue; f.counter {
			c.types[f.name] = prometheus.CounterValue
		}
	}
	return c
}

// Describe gives the families.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// metricQuotas bounds the limits that have metrics, before those are left out that the policy does not name.
const metricQuotas = 1000

// Collect gives the metrics.
func (c collector) Collect(to chan<- prometheus.Metric) {
	st := c.statusOf(func(f *fleet.Controller, ctx context.Context) (fleet.Status, error) {
		return f.Busiest(ctx, metricQuotas)
	})
	send := func(name string, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descs["weir_"+name], c.types["weir_"+name], v, labels...)
	}
	c.collectPlane(&st, send)
	if st.Unknown == "" {
		c.collectFleet(&st.Fleet, send)
	}
	for _, e := range c.board.estimates.rows(c.policy()) {
		if e.Named {
			send("fleet_input_ratio", e.Ratio, e.Model)
			send("fleet_input_spread_ratio", e.Spread, e.Model)
		}
	}
}

func (c collector) collectPlane(st *Status, send func(string, float64, ...string)) {
	send("controlplane_ready", number(st.Ready))
	send("controlplane_policy_broken", number(st.Problem != nil))
	if p := st.Policy; p != nil {
		send("controlplane_policy_info", 1, p.Version, p.Mode)
		send("controlplane_policy_loaded_timestamp_seconds", float64(p.LoadedAt.UnixMilli())/1000)
	}
	c.mu.Lock()
	loads, fails := c.loads, c.fails
	c.mu.Unlock()
	send("controlplane_policy_loads_total", float64(loads), "taken")
	send("controlplane_policy_loads_total", float64(fails), "failed")
	send("controlplane_credentials_broken", number(st.Access.Problem != ""))
	if end := st.Access.Expires; end != nil {
		send("controlplane_certificate_expires_timestamp_seconds", float64(end.Unix()))
	}
	if st.Store != "" {
		send("controlplane_store_up", number(st.StoreAway == ""))
	}
	send("controlplane_leads", number(st.Lead.Leads))
	send("controlplane_replicas", float64(1+len(st.Lead.Replicas)))
	if st.Lead.Epoch > 0 {
		send("fleet_epoch", float64(st.Lead.Epoch))
	}
	for state, n := range count(*st) {
		send("controlplane_nodes", float64(n), state)
	}
	nacks := c.xds.NACKs()
	for _, typ := range xds.Types() {
		send("controlplane_nacks_total", float64(nacks[typ]), typ)
	}
	c.board.mu.Lock()
	watchers := c.board.watchers
	c.board.mu.Unlock()
	send("controlplane_watchers", float64(watchers))
}
