// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/weirproxy/weir/policy"

// metrics are the counters of a VM, made when first needed: few of the combinations ever occur. They are counted in the VM's
// own memory and told the host once a second, so that counting costs a request no host call.
type metrics struct {
	all      []*Metric
	admitted *Metric
	denied   map[decisionKey]*Metric
	endings  [policy.NumEndings]*Metric
	charges  [policy.NumChargeSources]*Metric
}

// flush tells the host what was counted.
func (v *VM) flush() {
	for _, m := range v.metrics.all {
		if n := m.pending; n > 0 {
			m.pending = 0
			v.host.Add(m, n)
		}
	}
}

type decisionKey struct {
	name      string
	reason    policy.Reason
	tier      policy.Tier
	dimension policy.Dimension
}

// Names of metrics; docs/reference.md explains each.
const (
	metricRequests = "weir_requests_total"       // decision, reason, tier, dimension
	metricShadow   = "weir_shadow_denials_total" // the same, for limits in shadow mode
	metricCharges  = "weir_charges_total"        // source
	metricEndings  = "weir_endings_total"        // ending
	metricPanics   = "weir_panics_total"         // callback
)

func (v *VM) countAdmitted() {
	v.count(&v.metrics.admitted, metricRequests, "decision", policy.Admit.String())
}

// countDenied counts a refusal: the name, with why as labels.
func (v *VM) countDenied(name string, r *policy.Refusal) {
	k := decisionKey{name, r.Reason, r.Tier, r.Dimension}
	m := v.metrics.denied[k]
	if m == nil {
		m = v.newMetric(k.label())
		v.metrics.denied[k] = m
	}
	m.pending++
}

func (v *VM) newMetric(name string) *Metric {
	m := &Metric{Name: name}
	v.metrics.all = append(v.metrics.all, m)
	return m
}

func (k decisionKey) label() string {
	n := k.name + ".decision." + policy.Deny.String() + ".reason." + k.reason.String()
	switch k.reason {
	case policy.LimitExceeded, policy.QuotaExhausted, policy.RequestTooLarge:
		n += ".tier." + k.tier.String() + ".dimension." + k.dimension.String()
	}
	return n
}

// countEnding counts how a call ended, and where the numbers that it was charged come from.
func (v *VM) countEnding(e policy.Ending, c policy.ChargeSource) {
	v.count(&v.metrics.endings[e], metricEndings, "ending", e.String())
	v.count(&v.metrics.charges[c], metricCharges, "source", c.String())
}

// count counts something with one label.
func (v *VM) count(m **Metric, name, label, value string) {
	if *m == nil {
		*m = v.newMetric(name + "." + label + "." + value)
	}
	(*m).pending++
}
