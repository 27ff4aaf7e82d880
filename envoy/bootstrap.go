// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Keys of the node metadata by which an Envoy tells the control plane what it has on its disk.
const (
	MetadataWasm = "weir_wasm" // the path of the filter, named by its hash
	MetadataCA   = "weir_ca"   // the path of the bundle of trusted certificates; optional
)

// BootstrapOptions says which Envoy is to be started.
type BootstrapOptions struct {
	NodeID   string
	Cluster  string // of nodes; default weir
	XDSAddr  string // host:port of the control plane
	Control  string // host:port of the control plane where it takes reports; default DefaultControl
	WasmPath string // of the filter, as this Envoy sees it
	CAFile   string // of trusted certificates, as this Envoy sees it; default: the control plane's
	Form     string // ads (default): everything comes from the control plane
	Admin    string // host:port; default 127.0.0.1:0
	Metrics  string // host:port where others may read metrics and readiness; default: nowhere
	Access   Access
}

// Bootstrap gives what an Envoy of the ADS form is started with, as YAML.
func Bootstrap(o BootstrapOptions) ([]byte, error) {
	b, err := bootstrap(o)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return YAML(b, bootstrapComments)
}

func bootstrap(o BootstrapOptions) (*bootstrapv3.Bootstrap, error) {
	if f := cmp.Or(o.Form, "ads"); f != "ads" {
		return nil, fmt.Errorf("unknown form %q: a bootstrap has the form ads", f)
	}
	if o.NodeID == "" || o.WasmPath == "" {
		return nil, errors.New("needs a node id and the path of the filter")
	}
	xds, err := XDSCluster(o.XDSAddr, o.Access)
	if err != nil {
		return nil, err
	}
	admin, err := Address(cmp.Or(o.Admin, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	b := &bootstrapv3.Bootstrap{
		Node:             &corev3.Node{Id: o.NodeID, Cluster: cmp.Or(o.Cluster, "weir"), Metadata: Metadata(o.WasmPath, o.CAFile)},
		StaticResources:  &bootstrapv3.Bootstrap_StaticResources{},
		DynamicResources: dynamicResources(o.Access),
		StatsConfig:      StatsConfig(),
		Admin:            &bootstrapv3.Admin{Address: admin},
	}
	control, err := ControlCluster(cmp.Or(o.Control, DefaultControl), o.Access)
	if err != nil {
		return nil, err
	}
	b.StaticResources.Clusters = append(b.StaticResources.Clusters, xds, control)
	if o.Metrics != "" {
		if err := addMetrics(b, o.Metrics); err != nil {
			return nil, err
		}
	}
	return b, b.ValidateAll()
}

var bootstrapComments = Comments{
	"$.node": "The id names this Envoy to the control plane; no two may have the same.",
	"$.node.metadata": "What this Envoy has on its disk. The name of the filter holds the hash of its content, and the control plane\n" +
		"pushes no other code than this.",
	"$.static_resources.clusters[0].typed_extension_protocol_options": "Both ends notice within half a minute when the other is gone.",
	"$.static_resources.clusters[1]":                                  "Where the filter reports what it needs of the fleet's limits.",
	"$.dynamic_resources.lds_config.initial_fetch_timeout": "0s: not ready before the first configuration is there, however long the control plane takes. The default, 15s,\n" +
		"would declare an Envoy without any listener ready.",
	"$.stats_config": "The filter puts the labels of its metrics into their names; these make labels of them again.",
}

// Metadata gives a node's metadata.
func Metadata(wasm, ca string) *structpb.Struct {
	m := &structpb.Struct{Fields: map[string]*structpb.Value{MetadataWasm: structpb.NewStringValue(wasm)}}
	if ca != "" {
		m.Fields[MetadataCA] = structpb.NewStringValue(ca)
	}
	return m
}

func dynamicResources(a Access) *bootstrapv3.Bootstrap_DynamicResources {
	ads := &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(0),
	}
	return &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: XDSSource(a), LdsConfig: ads, CdsConfig: ads}
}

// XDSSource is the incremental protocol over the cluster of [XDSCluster].
func XDSSource(a Access) *corev3.ApiConfigSource {
	return &corev3.ApiConfigSource{
		ApiType:                   corev3.ApiConfigSource_DELTA_GRPC,
		TransportApiVersion:       corev3.ApiVersion_V3,
		SetNodeOnFirstMessageOnly: true,
		GrpcServices: []*corev3.GrpcService{{
			InitialMetadata: a.metadata(),
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName: XDSClusterName,
				// The default waits up to 30 s between attempts, which is how long an Envoy would stay behind after the
				// control plane is back.
				RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
					BaseInterval: durationpb.New(500 * time.Millisecond),
					MaxInterval:  durationpb.New(2 * time.Second),
				}},
			}},
		}},
	}
}

// Address makes an Envoy address of host:port.
func Address(hostPort string) (*corev3.Address, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fmt.Errorf("%q is no host:port: %w", hostPort, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q has no port number: %w", hostPort, err)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)},
	}}}, nil
}
