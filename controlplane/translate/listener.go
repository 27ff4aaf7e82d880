// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	uuidv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/request_id/uuid/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/envoy"
)

const (
	// streamIdle is how long nothing may move on a stream. A model may think for minutes before its first token, and a
	// request may wait in weir's queue before that. It is also what frees callers whose VM has died: nobody else calls
	// back for a request that a dead VM held.
	streamIdle = 10 * time.Minute

	// connectionBuffer bounds what Envoy keeps of one connection in each direction; bodies that the filter waits for have
	// a limit of their own, see bodyMargin. It must not depend on the policy: a listener that changes is drained.
	connectionBuffer = 1 << 20

	wasmFilterType = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"
)

func (t *translator) listener() (*listenerv3.Listener, error) {
	address, err := ListenAddress(t.Listen)
	if err != nil {
		return nil, err
	}
	h, err := manager()
	if err != nil {
		return nil, err
	}
	h.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: RouteName}}
	for _, f := range h.HttpFilters[:ownFilters] {
		f.ConfigType = &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
			ConfigSource: ads(),
			TypeUrls:     []string{wasmFilterType},
		}}
	}
	return listenerOf(address, h)
}

func listenerOf(address *corev3.Address, h *hcmv3.HttpConnectionManager) (*listenerv3.Listener, error) {
	a, err := envoy.Any(h)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Listener{
		Name:                          ListenerName,
		Address:                       address,
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(connectionBuffer),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: a},
		}}}},
	}, nil
}

// ads says that a resource comes over the stream that the listener came from. There is no time limit: better not to listen
// yet than to listen without a filter, which is what Envoy would do after 15 s.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(0),
	}
}

// ownFilters is how many of a manager's filters are weir's: they come first.
const ownFilters = 2

// manager is all of the HTTP connection manager but where routes and the filter come from.
func manager() (*hcmv3.HttpConnectionManager, error) {
	// Without x-envoy-* headers the upstream learns nothing of what stands before it.
	router, err := envoy.Any(&routerv3.Router{SuppressEnvoyHeaders: true})
	if err != nil {
		return nil, err
	}
	ids, err := envoy.Any(&uuidv3.UuidRequestIdConfig{PackTraceReason: wrapperspb.Bool(false)})
	if err != nil {
		return nil, err
	}
	h := &hcmv3.HttpConnectionManager{
		CodecType:         hcmv3.HttpConnectionManager_AUTO, // HTTP/1.1, and HTTP/2 without TLS
		StatPrefix:        ListenerName,
		StreamIdleTimeout: durationpb.New(streamIdle),
		UpgradeConfigs:    []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: FilterName},
			// Envoy starts its plugin with each push, and takes requests past it.
			{Name: SharesName, Disabled: true},
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}},
		},
		// Every request gets an id, by which the filter's log line is found again, and a caller's own id stays as it is:
		// it may be signed, or be what the caller asks its provider about.
		RequestIdExtension:        &hcmv3.RequestIDExtension{TypedConfig: ids},
		PreserveExternalRequestId: true,
		// HTTP/2 upstreams behind TLS are told so, whatever the caller spoke.
		SchemeHeaderTransformation: &corev3.SchemeHeaderTransformation{MatchUpstream: true},
		// The answer's server header is the provider's.
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
	}
	trust(h)
	paths(h)
	return h, nil
}

// trust makes sure that a caller is what its connection says.
func trust(h *hcmv3.HttpConnectionManager) {
	// The source address is the peer's: anyone can write an x-forwarded-for. Nor is it told to the provider.
	h.UseRemoteAddress = wrapperspb.Bool(true)
	h.SkipXffAppend = true
	// Nobody is internal: callers that are may order Envoy about by x-envoy-* headers, of which x-envoy-retry-on makes it
	// send three more times what was admitted once. An empty list of ranges would mean all private addresses and
	// loopback; no connection comes from 0.0.0.0.
	h.InternalAddressConfig = &hcmv3.HttpConnectionManager_InternalAddressConfig{CidrRanges: []*corev3.CidrRange{
		{AddressPrefix: "0.0.0.0", PrefixLen: wrapperspb.UInt32(32)},
	}}
}

// paths makes sure that filter, routes and upstream mean the same by a path, without breaking signatures over it.
func paths(h *hcmv3.HttpConnectionManager) {
	// Dots are resolved, as any client does before it signs: /v1/files/../chat/completions must not pass for a file.
	h.NormalizePath = wrapperspb.Bool(true)
	// Model ids carry escaped slashes (arn:…%2F…), so these stay; dots behind them see routes().
	h.PathWithEscapedSlashesAction = hcmv3.HttpConnectionManager_KEEP_UNCHANGED
	// Not merged: who writes two slashes and signs them gets them through, and the filter takes such paths for unknown.
	h.MergeSlashes = false
}
