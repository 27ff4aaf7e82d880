// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/controlplane/xds"
)

// A collector gives the metrics of a Server as they are when somebody asks, so that nothing has to be kept up to date.
type collector struct{ *Server }

// Describe describes nothing: the labels of weir_controlplane_nacks_total are not known beforehand.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect gives the metrics.
func (c collector) Collect(to chan<- prometheus.Metric) {
	st := c.Status()
	gauge := metric(to, prometheus.GaugeValue)
	counter := metric(to, prometheus.CounterValue)

	gauge("weir_controlplane_ready", "1 if ready.", number(st.Ready))
	gauge("weir_controlplane_policy_broken", "1 if the policy file has errors, so that the last good one stays.", number(st.Problem != nil))
	if p := st.Policy; p != nil {
		gauge("weir_controlplane_policy_info", "The policy that is served.", 1, "version", p.Version)
		gauge("weir_controlplane_policy_loaded_timestamp_seconds", "When it was loaded.", float64(p.LoadedAt.UnixMilli())/1000)
	}
	gauge("weir_controlplane_credentials_broken", "1 if certificates or tokens have errors, so that the old ones stay.", number(st.Access.Problem != ""))
	if st.Store != "" {
		gauge("weir_controlplane_store_up", "1 if the store answered when it was last asked.", number(st.StoreAway == ""))
	}
	gauge("weir_controlplane_leads", "1 if this control plane hands out the limits of the fleet.", number(st.Lead.Leads))
	gauge("weir_controlplane_replicas", "Control planes that have been heard of, this one with them.", float64(1+len(st.Lead.Replicas)))
	if st.Lead.Epoch > 0 {
		gauge("weir_fleet_epoch", "The newest controller of the fleet that has been heard of.", float64(st.Lead.Epoch))
	}
	if end := st.Access.Expires; end != nil {
		gauge("weir_controlplane_certificate_expires_timestamp_seconds", "When the certificate in force ends.", float64(end.Unix()))
	}
	c.mu.Lock()
	loads, fails := c.loads, c.fails
	c.mu.Unlock()
	counter("weir_controlplane_policy_loads_total", "Policies that were read.", float64(loads), "result", "taken")
	counter("weir_controlplane_policy_loads_total", "Policies that were read.", float64(fails), "result", "failed")

	const nodes = "Envoys by what they made of the newest policy."
	for state, n := range count(st) {
		gauge("weir_controlplane_nodes", nodes, float64(n), "state", state)
	}
	f := &st.Fleet
	gauge("weir_fleet_quotas", "Quotas that somebody uses.", float64(f.Total))
	counter("weir_fleet_reports_total", "Messages of nodes.", float64(f.Counters.Reports))
	counter("weir_fleet_pushes_total", "Documents sent to nodes.", float64(f.Counters.Pushes))
	counter("weir_fleet_pushed_bytes_total", "Bytes in documents sent to nodes.", float64(f.Counters.Bytes))
	counter("weir_fleet_grants_total", "Grants of shares and tokens.", float64(f.Counters.Grants))
	for typ, n := range c.xds.NACKs() {
		counter("weir_controlplane_nacks_total", "Configurations that an Envoy has rejected.", float64(n), "type", typ)
	}
}

// metric gives a function that sends one metric; labels are names and values in turn.
func metric(to chan<- prometheus.Metric, typ prometheus.ValueType) func(name, help string, v float64, labels ...string) {
	return func(name, help string, v float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), typ, v, values...)
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
