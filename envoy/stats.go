// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"net/netip"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
)

// labels are the labels that the filter writes into the names of its metrics, as in
// wasmcustom.weir_requests_total.decision.deny.reason.limit_exceeded.tier.tenant.dimension.tpm.
var labels = []string{"decision", "reason", "tier", "dimension", "ending", "source", "how", "within", "callback", "class", "result"}

// StatsConfig makes labels weir_decision, weir_reason … of them; what is left of the name is weir_requests_total.
func StatsConfig() *metricsv3.StatsConfig {
	tags := make([]*metricsv3.TagSpecifier, len(labels))
	for i, l := range labels {
		// The first group is cut out of the name, the second is the value.
		tags[i] = &metricsv3.TagSpecifier{TagName: "weir_" + l, TagValue: &metricsv3.TagSpecifier_Regex{
			Regex: `^wasmcustom\.weir_.*?(\.` + l + `\.([^.]+))`,
		}}
	}
	return &metricsv3.StatsConfig{StatsTags: tags}
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
