// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"math"
	"regexp"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamcodecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/envoy"
)

const (
	connectTimeout = 5 * time.Second

	// upstreamIdle is when Envoy closes a connection that nothing uses: before the 60 s after which common load balancers
	// do, or a request would now and then meet a closing connection and fail.
	upstreamIdle = 50 * time.Second
)

// clusters gives a cluster for each provider whose upstream is known, in the order of their prefixes.
func (t *translator) clusters() ([]*clusterv3.Cluster, error) {
	var all []*clusterv3.Cluster
	for _, p := range t.providers {
		if p.upstream == nil {
			continue
		}
		c, err := t.cluster(p.cluster, p.upstream, p.upstream.tls)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.name, err)
		}
		all = append(all, c)
		if p.sockets == "" {
			continue
		}
		if c, err = t.cluster(p.sockets, p.upstream, false); err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// cluster gives a cluster for an upstream. negotiate says whether the protocol is what the upstream chooses in the TLS
// handshake; it is HTTP/1.1 otherwise.
func (t *translator) cluster(name string, u *upstream, negotiate bool) (*clusterv3.Cluster, error) {
	a, err := envoy.Address(u.address())
	if err != nil {
		return nil, err
	}
	options, err := t.protocols(negotiate)
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:                          name,
		AltStatName:                   statName(name),
		ConnectTimeout:                durationpb.New(connectTimeout),
		LoadAssignment:                envoy.Endpoint(name, a),
		CircuitBreakers:               unlimited(),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{envoy.HTTPProtocolOptions: options},
		// Finds out within two minutes when the other end has gone without a word, on a stream that may be silent for ten.
		UpstreamConnectionOptions: &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
			KeepaliveTime:     wrapperspb.UInt32(60),
			KeepaliveInterval: wrapperspb.UInt32(15),
			KeepaliveProbes:   wrapperspb.UInt32(4),
		}},
	}
	if u.tls {
		if c.TransportSocket, err = t.transport(u); err != nil {
			return nil, err
		}
	}
	// Logical: the names of large APIs have other addresses with each answer of the DNS. Strictly followed, connections
	// with streams on them would be drained every few seconds.
	return c, envoy.Discover(c, true)
}

func (t *translator) protocols(negotiate bool) (*anypb.Any, error) {
	filters, err := t.upstreamFilters()
	if err != nil {
		return nil, err
	}
	o := &httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(upstreamIdle)},
		HttpFilters:               filters,
	}
	if negotiate {
		o.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_AutoConfig{AutoConfig: &httpv3.HttpProtocolOptions_AutoHttpConfig{}}
	} else {
		o.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
					HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
				},
			},
		}
	}
	return envoy.Any(o)
}

// upstreamFilters are those that every attempt of Envoy's passes: one that counts it, and what sends it.
func (t *translator) upstreamFilters() ([]*hcmv3.HttpFilter, error) {
	attempts, err := t.attempts()
	if err != nil {
		return nil, err
	}
	codec, err := envoy.Any(&upstreamcodecv3.UpstreamCodec{})
	if err != nil {
		return nil, err
	}
	return []*hcmv3.HttpFilter{
		{Name: AttemptName, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: attempts}},
		{Name: "envoy.filters.http.upstream_codec", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: codec}},
	}, nil
}

// unlimited keeps Envoy from answering 503 on its own account, which it would from 1024 requests in flight on: how many there
// may be is for the policy to say.
func unlimited() *clusterv3.CircuitBreakers {
	most := wrapperspb.UInt32(math.MaxUint32)
	b := &clusterv3.CircuitBreakers{}
	for _, p := range []corev3.RoutingPriority{corev3.RoutingPriority_DEFAULT, corev3.RoutingPriority_HIGH} {
		b.Thresholds = append(b.Thresholds, &clusterv3.CircuitBreakers_Thresholds{
			Priority: p, MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, RetryBudget: retryBudget(),
		})
	}
	return b
}

var odd = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// statName is a cluster's name in metrics. Envoy takes what stands before the first dot for it, so there must be none.
func statName(cluster string) string { return odd.ReplaceAllLiteralString(cluster, "_") }
