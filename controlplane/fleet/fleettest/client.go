// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A Client is an Envoy of the fleet on the network: it takes its configuration by the incremental protocol of a real one,
// acknowledges it, and posts its reports.
type Client struct {
	XDS     string // host:port
	Control string // host:port
	HTTP    *http.Client
	Every   time.Duration                  // between two looks at what there is to do
	Tick    func(now int64, e *Envoy)      // what callers do; called by Run, with the client locked
	Taken   func(now int64, e *Envoy)      // after a document; called by Run, with the client locked
	Posted  func(now int64, answer string) // after a report, with its status
	Drop    func() bool                    // whether the next report is lost; nil: none is

	mu    sync.Mutex
	envoy *Envoy
	start time.Time
	Bytes struct{ In, Out int64 } // of documents and reports; read it when Run has ended
	Posts int64
}

// NewClient makes a client of an Envoy.
func NewClient(e *Envoy) *Client {
	return &Client{envoy: e, start: time.Now(), Every: 50 * time.Millisecond, HTTP: http.DefaultClient}
}

// Now is the client's clock.
func (c *Client) Now() int64 { return int64(time.Since(c.start)) + 1 }

// Do has f look at the Envoy.
func (c *Client) Do(f func(now int64, e *Envoy)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.Now(), c.envoy)
}

// Run connects, and again when the connection breaks, until ctx ends.
func (c *Client) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wake := make(chan struct{}, 1)
	wg.Go(func() { c.report(ctx, wake) })
	for ctx.Err() == nil {
		if err := c.follow(ctx, wake); err != nil && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	wg.Wait()
}

func (c *Client) node() *corev3.Node {
	return &corev3.Node{
		Id: c.envoy.Name, Cluster: "weir", Metadata: envoy.Metadata("/opt/weir/weir-00000000.wasm", ""),
		UserAgentVersionType: &corev3.Node_UserAgentBuildVersion{
			UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}},
		},
	}
}

// follow takes configuration until the stream ends.
func (c *Client) follow(ctx context.Context, wake chan<- struct{}) error {
	conn, err := grpc.NewClient(c.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	first := c.node()
	for _, r := range []*discoveryv3.DeltaDiscoveryRequest{
		{TypeUrl: resourcev3.ClusterType},
		{TypeUrl: resourcev3.ListenerType},
		{TypeUrl: resourcev3.RouteType, ResourceNamesSubscribe: []string{"weir"}},
		{TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{"weir.policy", fleet.SharesName}},
	} {
		r.Node, first = first, nil
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := c.take(r); err != nil {
			return err
		}
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}); err != nil {
			return err
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

func (c *Client) take(r *discoveryv3.DeltaDiscoveryResponse) error {
	for _, resource := range r.Resources {
		if r.TypeUrl != resourcev3.ExtensionConfigType || resource.Name != fleet.SharesName {
			continue
		}
		e, w, b := new(corev3.TypedExtensionConfig), new(wasmfilterv3.Wasm), new(wrapperspb.BytesValue)
		if err := errors.Join(resource.Resource.UnmarshalTo(e), e.TypedConfig.UnmarshalTo(w), w.GetConfig().GetConfiguration().UnmarshalTo(b)); err != nil {
			return err
		}
		c.mu.Lock()
		now := c.Now()
		c.Bytes.In += int64(len(b.Value))
		err := c.envoy.Take(now, b.Value)
		if c.Taken != nil {
			c.Taken(now, c.envoy)
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// report posts what there is to say.
func (c *Client) report(ctx context.Context, wake <-chan struct{}) {
	t := time.NewTicker(c.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-wake:
		}
		c.mu.Lock()
		now := c.Now()
		if c.Tick != nil {
			c.Tick(now, c.envoy)
		}
		b := c.envoy.Message(now)
		c.mu.Unlock()
		if b == nil || c.Drop != nil && c.Drop() {
			continue
		}
		status := c.post(ctx, b)
		if c.Posted != nil {
			c.Posted(now, status)
		}
	}
}

func (c *Client) post(ctx context.Context, b []byte) (status string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.Control+fleet.ReportPath, bytes.NewReader(b))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", fleet.ReportType)
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, fleet.MaxMessage))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Posts++
	c.Bytes.Out += int64(len(b))
	if err == nil && resp.StatusCode == http.StatusOK {
		err = c.envoy.Answer(answer)
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", resp.Status, err)
	}
	return resp.Status
}
