// SPDX-License-Identifier: Apache-2.0

// Package translate makes Envoy configuration of a policy: [Resources] what the control plane serves to Envoys that take
// everything from it, [Fragments] the pieces to put into an Envoy that has a configuration of its own.
//
// It is pure: the same input gives the same bytes, and the versions are hashes of them, so that a control plane that starts
// again pushes nothing that Envoys already have. Golden files in testdata show what comes out.
package translate

import (
	"cmp"
	"errors"
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// Names of resources. Those of clusters begin with ClusterPrefix and end with the provider's.
const (
	ListenerName  = "weir"
	RouteName     = "weir"
	FilterName    = "weir.policy"
	SharesName    = fleet.SharesName
	AttemptName   = "weir.attempt"
	ClusterPrefix = "weir."
	socketPrefix  = "weir-websocket."
)

// DefaultCAFile is where Debian, Ubuntu and Alpine, and so Envoy's images, have the certificates that are trusted.
const DefaultCAFile = "/etc/ssl/certs/ca-certificates.crt"

// Input is what is translated.
type Input struct {
	Spec     *policy.Spec
	Policy   []byte // what the filter gets; default: Spec as JSON
	BodyCap  int64  // bytes of a body that the filter has Envoy hold; default: the policy's
	Listen   string // host:port where Envoy takes requests
	Wasm     string // path of the filter on the node
	CAFile   string // path of the trusted certificates on the node; default DefaultCAFile
	Upstream string // host:port that takes the place of every upstream and cluster, as of a mock; empty: none
}

// A Set is the configuration of one node.
type Set struct {
	Listeners  []*listenerv3.Listener
	Routes     []*routev3.RouteConfiguration
	Clusters   []*clusterv3.Cluster
	Extensions []*corev3.TypedExtensionConfig // the filter's alone: a node's shares are [Shares]
	Policy     string                         // version of the policy: the same for all nodes
}

// Resources translates a policy for one node.
func Resources(in Input) (*Set, error) {
	t, err := newTranslator(in)
	if err != nil {
		return nil, err
	}
	s := &Set{Routes: []*routev3.RouteConfiguration{t.routes()}, Policy: Version(t.Policy)}
	if s.Clusters, err = t.clusters(); err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	e, err := t.extension()
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	l, err := t.listener()
	if err != nil {
		return nil, fmt.Errorf("listener: %w", err)
	}
	s.Extensions, s.Listeners = []*corev3.TypedExtensionConfig{e}, []*listenerv3.Listener{l}
	return s, s.validate()
}

// A translator is an input that is complete.
type translator struct {
	Input
	providers []*provider // the longest prefix first
	parse     int64       // bytes of a body that the filter reads
}

// A provider is one whose upstream is known.
type provider struct {
	name     string
	prefix   string    // without a slash at the end; empty: every path
	cluster  string    // where its requests go
	sockets  string    // where its websockets go; empty: where all go
	upstream *upstream // nil: the cluster is the Envoy's own
	dialect  string
	counted  bool // the cluster has the filter that counts attempts
}

func newTranslator(in Input) (*translator, error) {
	if in.Spec == nil || in.Wasm == "" {
		return nil, errors.New("translate: needs a policy and the path of the filter")
	}
	compiled, err := policy.Compile(in.Spec)
	if err != nil {
		return nil, err
	}
	t := &translator{Input: in}
	t.BodyCap = cmp.Or(t.BodyCap, compiled.MostHeld())
	t.parse = compiled.Parse
	t.CAFile = cmp.Or(t.CAFile, DefaultCAFile)
	if t.Policy == nil {
		if t.Policy, err = policy.Encode(in.Spec); err != nil {
			return nil, err
		}
	}
	for _, c := range compiled.Providers { // in the order in which the filter takes them
		p, err := t.provider(c)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", c.Name, err)
		}
		t.providers = append(t.providers, p)
	}
	return t, nil
}

func (t *translator) provider(c *policy.Provider) (*provider, error) {
	spec := t.Spec.Providers[c.Name]
	p := &provider{name: c.Name, prefix: c.Prefix, cluster: spec.Cluster, dialect: c.Dialect, counted: c.Attempts}
	if t.Upstream == "" && spec.Upstream == "" {
		return p, nil
	}
	p.cluster = ClusterPrefix + c.Name
	u, err := parseUpstream(spec.Upstream, t.Upstream)
	if err != nil {
		return nil, err
	}
	p.upstream, p.counted = u, true
	// Websockets need HTTP/1.1, and an upstream behind TLS that can do both is spoken to in HTTP/2. Where the policy lets
	// none through, nothing is done about that.
	if u.tls && (c.Dialect == "generic" || len(spec.Unmetered) > 0) {
		p.sockets = socketPrefix + c.Name
	}
	return p, nil
}
