// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"errors"
	"fmt"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// readable are the paths of the admin interface that others may ask for. The rest ends Envoy, or shows its configuration.
var readable = []string{"/stats/prometheus", "/ready"}

const metricsName = "weir_admin"

// addMetrics lets others read what is readable of the admin interface, at an address of its own.
func addMetrics(b *bootstrapv3.Bootstrap, addr string) error {
	at, err := Address(addr)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	admin := b.Admin.Address
	if admin.GetSocketAddress().GetPortValue() == 0 {
		return errors.New("metrics: the admin address needs a port that is known, such as 127.0.0.1:9901")
	}
	manager, err := metricsManager()
	if err != nil {
		return err
	}
	filter, err := Any(manager)
	if err != nil {
		return err
	}
	b.StaticResources.Listeners = append(b.StaticResources.Listeners, &listenerv3.Listener{
		Name: metricsName, Address: at,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: filter},
		}}}},
		IgnoreGlobalConnLimit: true, // who asks how Envoy is must learn it also when there is too much to do
	})
	c := &clusterv3.Cluster{Name: metricsName, ConnectTimeout: durationpb.New(time.Second), LoadAssignment: Endpoint(metricsName, admin)}
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, c)
	return Discover(c, false)
}

func metricsManager() (*hcmv3.HttpConnectionManager, error) {
	router, err := Any(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	host := &routev3.VirtualHost{Name: metricsName, Domains: []string{"*"}}
	for _, path := range readable {
		host.Routes = append(host.Routes, &routev3.Route{
			Match: &routev3.RouteMatch{
				PathSpecifier: &routev3.RouteMatch_Path{Path: path},
				Headers:       []*routev3.HeaderMatcher{{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "GET"}}}}},
			},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: metricsName}}},
		})
	}
	return &hcmv3.HttpConnectionManager{
		StatPrefix:                metricsName,
		RouteSpecifier:            &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: metricsName, VirtualHosts: []*routev3.VirtualHost{host}}},
		HttpFilters:               []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}}},
		NormalizePath:             wrapperspb.Bool(true),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(time.Minute)},
	}, nil
}
