// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/policy/fleet"
)

// FragmentInput is what the pieces are made of. Listen of Input is needed by [Pieces.Bootstrap] only.
type FragmentInput struct {
	Input
	XDS     string // host:port of the control plane
	Control string // host:port of the control plane where it takes reports; default envoy.DefaultControl
	NodeID  string // default weir
	Cluster string // of nodes; default weir
	Admin   string // host:port, for [Pieces.Bootstrap]; default 127.0.0.1:0
	Access  envoy.Access
	Static  bool // there is no control plane: the policy as it is now, and each Envoy has its limits for itself
}

// Pieces are what belongs into an Envoy that has a configuration of its own. The policy is compiled into them, so that the
// Envoy limits from its first request on, whether there is a control plane or not.
type Pieces struct {
	Node     *corev3.Node
	Manager  *hcmv3.HttpConnectionManager // settings, with the filter and the router, of a connection manager
	Host     *routev3.VirtualHost
	Clusters []*clusterv3.Cluster // of the providers
	Control  []*clusterv3.Cluster // of the control plane; none if there is none

	listen, admin string
}

// firstFetch is how long the filter's default configuration waits for a newer one.
const firstFetch = time.Second

// Fragments gives the pieces.
func Fragments(in FragmentInput) (*Pieces, error) {
	t, err := newTranslator(in.Input)
	if err != nil {
		return nil, err
	}
	p := &Pieces{
		Node:   &corev3.Node{Id: cmp.Or(in.NodeID, "weir"), Cluster: cmp.Or(in.Cluster, "weir"), Metadata: envoy.Metadata(t.Wasm, in.CAFile)},
		Host:   t.virtualHost(),
		listen: in.Listen,
		admin:  cmp.Or(in.Admin, "127.0.0.1:0"),
	}
	if p.Clusters, err = t.clusters(); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	if !in.Static {
		if p.Control, err = in.control(); err != nil {
			return nil, err
		}
	}
	if p.Manager, err = t.fragmentManager(p.Host, in); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return p, p.validate()
}

// control gives the clusters of the control plane.
func (in FragmentInput) control() ([]*clusterv3.Cluster, error) {
	xds, err := envoy.XDSCluster(in.XDS, in.Access)
	if err != nil {
		return nil, err
	}
	control, err := envoy.ControlCluster(cmp.Or(in.Control, envoy.DefaultControl), in.Access)
	return []*clusterv3.Cluster{xds, control}, err
}

func (t *translator) fragmentManager(host *routev3.VirtualHost, in FragmentInput) (*hcmv3.HttpConnectionManager, error) {
	m, err := manager()
	if err != nil {
		return nil, err
	}
	filter, err := t.wasm()
	if err != nil {
		return nil, err
	}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
		Name: RouteName, VirtualHosts: []*routev3.VirtualHost{host},
	}}
	if in.Static {
		m.HttpFilters[0].ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: filter}
		m.HttpFilters = slices.Delete(m.HttpFilters, 1, ownFilters) // nobody grants shares
		return m, nil
	}
	m.HttpFilters[0].ConfigType = discovered(filter, in.Access)
	none, err := Shares((&fleet.ToNode{}).Encode())
	if err != nil {
		return nil, err
	}
	m.HttpFilters[1].ConfigType = discovered(none.TypedConfig, in.Access)
	return m, nil
}

// discovered is the filter that starts with a configuration of its own and takes newer ones from the control plane. It asks
// over a stream of its own, as the Envoy's ADS, if it has any, is somebody else's.
func discovered(filter *anypb.Any, access envoy.Access) *hcmv3.HttpFilter_ConfigDiscovery {
	return &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
		ConfigSource: &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: envoy.XDSSource(access)},
			InitialFetchTimeout:   durationpb.New(firstFetch),
		},
		DefaultConfig:                    filter,
		ApplyDefaultConfigWithoutWarming: true,
		TypeUrls:                         []string{wasmFilterType},
	}}
}

// Bootstrap puts the pieces together to an Envoy of nothing else, as YAML.
func (p *Pieces) Bootstrap() ([]byte, error) {
	address, err := ListenAddress(p.listen)
	if err != nil {
		return nil, err
	}
	l, err := listenerOf(address, p.Manager)
	if err != nil {
		return nil, err
	}
	admin, err := envoy.Address(p.admin)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	b := &bootstrapv3.Bootstrap{
		Node:            p.Node,
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Listeners: []*listenerv3.Listener{l}, Clusters: p.allClusters()},
		StatsConfig:     envoy.StatsConfig(),
		Admin:           &bootstrapv3.Admin{Address: admin},
	}
	if err := b.ValidateAll(); err != nil {
		return nil, err
	}
	return envoy.YAML(b, nil)
}

func (p *Pieces) allClusters() []*clusterv3.Cluster { return slices.Concat(p.Clusters, p.Control) }

// filters are weir's own of the connection manager.
func (p *Pieces) filters() []*hcmv3.HttpFilter {
	return p.Manager.HttpFilters[:len(p.Manager.HttpFilters)-1]
}

// settings are the connection manager's but for filters, routes and its name in metrics.
func (p *Pieces) settings() *hcmv3.HttpConnectionManager {
	m := proto.CloneOf(p.Manager)
	m.HttpFilters, m.RouteSpecifier, m.StatPrefix = nil, nil, ""
	return m
}

func (p *Pieces) validate() error {
	errs := []error{p.Node.ValidateAll(), p.Manager.ValidateAll(), p.Host.ValidateAll()}
	for _, c := range p.allClusters() {
		errs = append(errs, c.ValidateAll())
	}
	return errors.Join(errs...)
}
