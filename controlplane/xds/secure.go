// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"crypto/tls"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// Security says who may connect. The zero value lets everybody in.
type Security struct {
	TLS *tls.Config // nil: plain

	// Allow says why who is at the other end may not be the node of this id. It may be nil.
	Allow func(ctx context.Context, node string) error
}

// secure gives the options that make gRPC hold to it.
func (s *Server) secure(sec Security) (options []grpc.ServerOption) {
	if sec.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(sec.TLS)))
	}
	if sec.Allow != nil {
		options = append(options, grpc.StreamInterceptor(
			func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				c := &checkedStream{ServerStream: ss, server: s, allow: sec.Allow}
				if err := next(srv, c); err != nil || c.refused == nil {
					return err
				}
				return c.refused // next takes it for the end of the stream
			}))
	}
	return options
}

// A checkedStream lets no request through that names a node which the other end may not be. The first one has to name its node,
// or it is refused further on.
type checkedStream struct {
	grpc.ServerStream
	server *Server
	allow  func(context.Context, string) error

	refused error
}

// RecvMsg reads a request.
func (c *checkedStream) RecvMsg(m any) error {
	if err := c.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	r, ok := m.(*discoveryv3.DeltaDiscoveryRequest)
	if !ok || r.GetNode() == nil {
		return nil
	}
	if err := c.allow(c.Context(), r.GetNode().GetId()); err != nil {
		c.server.refuse(nodeOf(r.GetNode()), err)
		c.refused = status.Error(codes.PermissionDenied, "weir: "+err.Error())
		return c.refused
	}
	return nil
}
