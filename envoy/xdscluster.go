// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"errors"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	commondnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// XDSClusterName is the cluster by which an Envoy reaches the control plane.
const XDSClusterName = "weir_xds"

// HTTPProtocolOptions is the key of a cluster's protocol options.
const HTTPProtocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// XDSCluster is the cluster of the control plane at host:port.
func XDSCluster(addr string, access Access) (*clusterv3.Cluster, error) {
	a, err := Address(addr)
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	if a.GetSocketAddress().Address == "" || a.GetSocketAddress().GetPortValue() == 0 {
		return nil, errors.New("control plane: write host:port, such as 127.0.0.1:18000")
	}
	options, err := Any(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{ConnectionKeepalive: &corev3.KeepaliveSettings{
						Interval: durationpb.New(20 * time.Second),
						Timeout:  durationpb.New(5 * time.Second),
					}},
				},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:                          XDSClusterName,
		ConnectTimeout:                durationpb.New(5 * time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{HTTPProtocolOptions: options},
		LoadAssignment:                Endpoint(XDSClusterName, a),
	}
	return c, errors.Join(Discover(c, false), access.Secure(c, a.GetSocketAddress().Address))
}

// Endpoint is the load assignment of a cluster with one address.
func Endpoint(name string, a *corev3.Address) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: a}},
		}},
	}}}
}

// Discover says how Envoy finds a cluster's one address: it is an IP address, or else a name for the DNS. logical keeps
// connections to addresses that a later answer of the DNS no longer has.
func Discover(c *clusterv3.Cluster, logical bool) error {
	if isIP(c.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress().Address) {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		return nil
	}
	dns, err := Any(&dnsv3.DnsCluster{
		RespectDnsTtl:                true,
		DnsMinRefreshRate:            durationpb.New(5 * time.Second),
		DnsRefreshRate:               durationpb.New(5 * time.Second),
		DnsLookupFamily:              commondnsv3.DnsLookupFamily_ALL, // both families, whichever connects first
		AllAddressesInSingleEndpoint: logical,
	})
	if err != nil {
		return err
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_ClusterType{
		ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "envoy.clusters.dns", TypedConfig: dns},
	}
	return nil
}

// Any packs a message. Unlike anypb.New it gives the same bytes for the same message: bytes that differ, for a map inside
// the message was written in another order, would be a new version to every Envoy.
func Any(m proto.Message) (*anypb.Any, error) {
	a := new(anypb.Any)
	if err := anypb.MarshalFrom(a, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return a, nil
}
