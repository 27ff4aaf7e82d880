// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	extensionv3 "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/log"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/policy/fleet"
)

// Build makes the configuration of a node. It depends on what files the node has, and on nothing else of it.
type Build func(Node) (*translate.Set, error)

// Options says how a Server works.
type Options struct {
	WasmHash string       // of the filter that belongs to this control plane, at least its first 8 digits; empty: any
	Shares   []byte       // what a node gets for its shares before a [Server.Push]; nil: a message that says nothing
	Logger   *slog.Logger // nil: no log
	Security Security
}

// A Server serves configuration to Envoys.
type Server struct {
	wasmHash string
	initial  []byte
	log      *slog.Logger
	cache    cachev3.SnapshotCache
	security Security

	// push is held while snapshots are made, so that none overtakes a newer one. It is taken before mu, and never by a
	// stream that has watches: setting a snapshot may have to wait for those.
	push   sync.Mutex
	build  Build
	built  map[files]*built  // what build has made
	shares map[string][]byte // by node, as long as it has a stream

	mu      sync.Mutex
	streams map[int64]*stream
	nodes   map[string]int // streams by node
	refused map[string]*refusal
	crowded time.Time        // when it was logged last that there are too many of them
	nacks   map[string]int64 // rejections by type
}

// New makes a server. It has nothing to serve before Update.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Shares == nil {
		o.Shares = (&fleet.ToNode{}).Encode()
	}
	return &Server{
		wasmHash: short(o.WasmHash),
		log:      o.Logger,
		cache:    cachev3.NewSnapshotCache(true, cachev3.IDHash{}, cacheLog(o.Logger)),
		initial:  o.Shares,
		built:    map[files]*built{},
		shares:   map[string][]byte{},
		security: o.Security,
		streams:  map[int64]*stream{},
		nodes:    map[string]int{},
		refused:  map[string]*refusal{},
		nacks:    map[string]int64{},
	}
}

func cacheLog(l *slog.Logger) log.Logger {
	debug := func(format string, args ...any) { l.Debug("xds: " + fmt.Sprintf(format, args...)) }
	return log.LoggerFuncs{DebugFunc: debug, InfoFunc: debug, WarnFunc: debug, ErrorFunc: func(format string, args ...any) {
		l.Error("xds: " + fmt.Sprintf(format, args...))
	}}
}

// Update sends what build makes to all Envoys, now and as they connect.
func (s *Server) Update(build Build) {
	s.push.Lock()
	defer s.push.Unlock()
	s.build, s.built = build, map[files]*built{}
	for _, st := range s.connected() {
		s.send(st)
	}
}

// Serve serves until ctx ends, and leaves nothing behind.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	g := grpc.NewServer(append(s.secure(s.security),
		// Without this policy gRPC throws out Envoys that ask for a sign of life more often than every five minutes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 5 * time.Second}),
	)...)
	// With this context all streams end, which GracefulStop waits for.
	streams, end := context.WithCancel(context.Background())
	defer end()
	x := serverv3.NewServer(streams, s.cache, callbacks{s})
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, x)
	extensionv3.RegisterExtensionConfigDiscoveryServiceServer(g, x)

	failed := make(chan error, 1)
	go func() { failed <- g.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("xds: %w", err)
	case <-ctx.Done():
	}
	end()
	late := time.AfterFunc(2*time.Second, g.Stop)
	defer late.Stop()
	g.GracefulStop()
	if err := <-failed; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("xds: %w", err)
	}
	return nil
}
