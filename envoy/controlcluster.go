// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"errors"
	"fmt"
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	mutationrulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	upstreamcodecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/policy/fleet"
)

// DefaultControl is where weir serve takes reports if nothing else is said.
const DefaultControl = "127.0.0.1:10080"

// ControlCluster is the cluster by which the filter reports and asks for central limits, to the control plane's status address at
// host:port.
func ControlCluster(addr string, access Access) (*clusterv3.Cluster, error) {
	a, err := Address(addr)
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	if a.GetSocketAddress().Address == "" || a.GetSocketAddress().GetPortValue() == 0 {
		return nil, errors.New("control plane: write host:port, such as " + DefaultControl)
	}
	most := wrapperspb.UInt32(math.MaxUint32)
	c := &clusterv3.Cluster{
		Name:           fleet.ControlCluster,
		ConnectTimeout: durationpb.New(time.Second), // a report that is a second late is of no use
		LoadAssignment: Endpoint(fleet.ControlCluster, a),
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{ // each call may ask for its limits
			MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, MaxRetries: most,
		}}},
	}
	if err := errors.Join(Discover(c, false), access.present(c)); err != nil {
		return nil, err
	}
	return c, access.Secure(c, a.GetSocketAddress().Address)
}

// present has what the filter sends carry the token, which the filter does not know. What it sends to xDS has it by its own means.
func (a Access) present(c *clusterv3.Cluster) error {
	if a.Token == "" {
		return nil
	}
	h := a.metadata()[0]
	mutation, err := httpFilter("envoy.filters.http.header_mutation", &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{
		RequestMutations: []*mutationrulesv3.HeaderMutation{{Action: &mutationrulesv3.HeaderMutation_Append{
			Append: &corev3.HeaderValueOption{Header: h, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		}}},
	}})
	codec, err2 := httpFilter("envoy.filters.http.upstream_codec", &upstreamcodecv3.UpstreamCodec{})
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	options, err := Any(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
		}},
		HttpFilters: []*hcmv3.HttpFilter{mutation, codec},
	})
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{HTTPProtocolOptions: options}
	return err
}

func httpFilter(name string, config proto.Message) (*hcmv3.HttpFilter, error) {
	any, err := Any(config)
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: any}}, err
}
