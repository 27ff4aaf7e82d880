// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/policy"
)

// serve serves s until the test ends, and gives the address.
func serve(t *testing.T, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); must(t, <-done) })
	return l.Addr().String()
}

// limited is a policy with one limit.
func limited(rpm policy.Count) *policy.Spec {
	return &policy.Spec{
		APIVersion: policy.APIVersion,
		Providers:  map[string]policy.ProviderSpec{"tools": {Upstream: "http://127.0.0.1:1", Dialect: "generic"}},
		Limits:     policy.LimitsSpec{Tenant: map[string]*policy.LimitSpec{"default": {RPM: &rpm}}},
	}
}

// build translates a policy for any node.
func build(spec *policy.Spec) Build {
	return func(n Node) (*translate.Set, error) {
		return translate.Resources(translate.Input{Spec: spec, Listen: "127.0.0.1:0", Wasm: n.Wasm})
	}
}

func versionOf(t *testing.T, spec *policy.Spec) string {
	t.Helper()
	b, err := policy.Encode(spec)
	must(t, err)
	return translate.Version(b)
}

// A fakeEnvoy speaks as Envoy does: it names its node once, and answers each response.
type fakeEnvoy struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node // of the next request
	got    chan *discoveryv3.DeltaDiscoveryResponse
	end    chan error // how the stream ended
}

func connect(t *testing.T, addr, id, wasm string) *fakeEnvoy {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	must(t, err)
	f := &fakeEnvoy{t: t, conn: conn, stream: stream, got: make(chan *discoveryv3.DeltaDiscoveryResponse, 100), end: make(chan error, 1)}
	f.node = &corev3.Node{Id: id, Cluster: "c", UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
		UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}},
	}}
	if wasm != "" {
		f.node.Metadata = envoy.Metadata(wasm, "")
	}
	go f.receive()
	t.Cleanup(f.close)
	return f
}

func (f *fakeEnvoy) receive() {
	for {
		r, err := f.stream.Recv()
		if err != nil {
			f.end <- err
			return
		}
		f.got <- r
	}
}

func (f *fakeEnvoy) close() { f.conn.Close() }

func (f *fakeEnvoy) send(r *discoveryv3.DeltaDiscoveryRequest) {
	f.t.Helper()
	r.Node, f.node = f.node, nil
	if err := f.stream.Send(r); err != io.EOF { // of a stream that has ended receive says why
		must(f.t, err)
	}
}

// ask subscribes to everything, as an Envoy that has nothing, or has versions of the filter from before.
func (f *fakeEnvoy) ask(had map[string]string) {
	f.t.Helper()
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ClusterType})
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ListenerType})
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.RouteType, ResourceNamesSubscribe: []string{translate.RouteName}})
	f.send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{translate.FilterName}, InitialResourceVersions: had,
	})
}

// next gives the next response.
func (f *fakeEnvoy) next() *discoveryv3.DeltaDiscoveryResponse {
	f.t.Helper()
	select {
	case r := <-f.got:
		return r
	case err := <-f.end:
		f.t.Fatalf("the stream has ended: %v", err)
	case <-time.After(5 * time.Second):
		f.t.Fatal("no response")
	}
	return nil
}

// quiet checks that nothing more comes.
func (f *fakeEnvoy) quiet() {
	f.t.Helper()
	select {
	case r := <-f.got:
		f.t.Fatalf("got one more response: %s %s", r.TypeUrl, r.SystemVersionInfo)
	case err := <-f.end:
		f.t.Fatalf("the stream has ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
}

// answer accepts a response, or rejects it for a reason.
func (f *fakeEnvoy) answer(r *discoveryv3.DeltaDiscoveryResponse, reason string) {
	f.t.Helper()
	q := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}
	if reason != "" {
		q.ErrorDetail = &status.Status{Code: 3, Message: reason}
	}
	f.send(q)
}

// start connects, and accepts all of the first configuration. It gives the versions of the filter's resources.
func start(t *testing.T, addr, id, wasm string) (*fakeEnvoy, map[string]string) {
	t.Helper()
	f := connect(t, addr, id, wasm)
	f.ask(nil)
	var had map[string]string
	for range 4 {
		r := f.next()
		if r.TypeUrl == resourcev3.ExtensionConfigType {
			had = map[string]string{r.Resources[0].Name: r.Resources[0].Version}
		}
		f.answer(r, "")
	}
	f.quiet()
	return f, had
}

// eventually waits until what is asked of the nodes holds.
func eventually(t *testing.T, s *Server, what string, holds func([]Status) bool) []Status {
	t.Helper()
	end := time.Now().Add(10 * time.Second)
	for {
		nodes := s.Nodes()
		if holds(nodes) {
			return nodes
		}
		if time.Now().After(end) {
			t.Fatalf("never %s: %+v", what, nodes)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
