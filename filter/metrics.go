// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/weirproxy/weir/policy"

// metrics are the counters of a VM, made when first needed: few of the combinations ever occur.
type metrics struct {
	decisions map[decisionKey]*Metric
	named     map[string]*Metric
}

type decisionKey struct {
	name      string
	verdict   policy.Verdict
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

// decision counts a decision: the name, with what was decided as labels.
func (v *VM) countDecision(name string, verdict policy.Verdict, r *policy.Refusal) {
	k := decisionKey{name, verdict, r.Reason, r.Tier, r.Dimension}
	m := v.metrics.decisions[k]
	if m == nil {
		m = &Metric{Name: k.label()}
		v.metrics.decisions[k] = m
	}
	v.host.Count(m)
}

func (k decisionKey) label() string {
	n := k.name + ".decision." + k.verdict.String()
	if k.reason == policy.None {
		return n
	}
	n += ".reason." + k.reason.String()
	switch k.reason {
	case policy.LimitExceeded, policy.QuotaExhausted, policy.RequestTooLarge:
		n += ".tier." + k.tier.String() + ".dimension." + k.dimension.String()
	}
	return n
}

// count counts something with one label.
func (v *VM) count(name, label, value string) {
	key := name + "." + label + "." + value
	m := v.metrics.named[key]
	if m == nil {
		m = &Metric{Name: key}
		v.metrics.named[key] = m
	}
	v.host.Count(m)
}
