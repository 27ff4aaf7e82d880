// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

const (
	byTenant = `actions: [{request_headers: {header_name: x-tenant, descriptor_key: tenant}}]`
	// A request charges nothing when it comes and its real tokens when its stream is done: what Envoy can do without Wasm.
	whenDone = `[{` + byTenant + `, hits_addend: {number: 0}}, {` + byTenant + `, apply_on_stream_done: true, hits_addend: {format: "%DYNAMIC_METADATA(llm:total_tokens)%"}}]`
	byCall   = `[{actions: [{generic_key: {descriptor_key: kind, descriptor_value: call}}, {request_headers: {header_name: x-tenant, descriptor_key: tenant}}]}]`
)

// usageFilters have Envoy read total_tokens of a JSON answer and of a stream's last event.
const usageFilters = `
          - name: json_to_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata
              response_rules:
                rules: [{selectors: [{key: usage}, {key: total_tokens}], on_present: {metadata_namespace: llm, key: total_tokens, type: NUMBER}}]
          - name: sse_to_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.sse_to_metadata.v3.SseToMetadata
              response_rules:
                content_parser:
                  name: json
                  typed_config:
                    "@type": type.googleapis.com/envoy.extensions.content_parsers.json.v3.JsonContentParser
                    rules: [{rule: {selectors: [{key: usage}, {key: total_tokens}], on_present: {metadata_namespace: llm, key: total_tokens, type: NUMBER}}}]`

// serviceFilter asks the rate limit service. The time-out is 0.5 s, for with Envoy's 20 ms calls of a burst fail open.
func serviceFilter(limits string) string {
	return `
          - name: ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: bench
              timeout: 0.5s
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              rate_limit_service: {transport_api_version: V3, grpc_service: {envoy_grpc: {cluster_name: service}}}
              rate_limits: ` + limits
}

// localFilter counts requests in Envoy: perf has no limit that matters, change the one given.
func localFilter(calls, change int) string {
	bucket := func(n int) string {
		return fmt.Sprintf("token_bucket: {max_tokens: %d, tokens_per_fill: %d, fill_interval: 60s}", n, n)
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, `
          - name: local_ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: bench
              rate_limits: [{%s}]
              filter_enabled: {default_value: {numerator: 100}}
              filter_enforced: {default_value: {numerator: 100}}
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              %s
              descriptors:
              - {entries: [{key: tenant, value: perf}], %s}
              - {entries: [{key: tenant, value: within}], %s}
              - {entries: [{key: tenant, value: change}], %s}`, byTenant, bucket(unlimited), bucket(unlimited), bucket(calls*10), bucket(change))
	for _, t := range tenants {
		fmt.Fprintf(b, "\n              - {entries: [{key: tenant, value: %s}], %s}", t, bucket(calls))
	}
	return b.String()
}

// listener is written into a file of its own, so that a change of it reaches Envoy without a control plane.
func listener(addr, filters string) string {
	return `resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: bench
  address: ` + socketAddress(addr) + `
  filter_chains:
  - filters:
    - name: hcm
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: bench
        route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: provider, timeout: 0s}}]}]}
        http_filters:` + strings.ReplaceAll(filters, "\n          ", "\n        ") + `
        - name: router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`
}

func bootstrap(lds, provider, service string) string {
	cluster := func(name, addr, more string) string {
		return `
  - name: ` + name + `
    connect_timeout: 1s
    circuit_breakers: {thresholds: [{max_connections: 4096, max_pending_requests: 4096, max_requests: 4096}]}` + more + `
    load_assignment: {cluster_name: ` + name + `, endpoints: [{lb_endpoints: [{endpoint: {address: ` + socketAddress(addr) + `}}]}]}`
	}
	return `node: {id: bench, cluster: bench}
dynamic_resources: {lds_config: {path_config_source: {path: "` + lds + `"}}}
static_resources:
  clusters:` + cluster("provider", provider, "") + cluster("service", service, `
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}`) + "\n"
}

func socketAddress(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
}
