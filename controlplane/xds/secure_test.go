// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// An Envoy that may not be the node that it names gets nothing, and the page says why.
func TestNodesAreWhoTheySay(t *testing.T) {
	s := New(Options{Security: Security{Allow: func(ctx context.Context, node string) error {
		if md, ok := metadata.FromIncomingContext(ctx); !ok || md.Len() == 0 {
			t.Error("the credentials are missing")
		}
		if node != "a" {
			return errors.New("not this node's")
		}
		return nil
	}}})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	good := connect(t, addr, "a", "/weir-0123abcd.wasm")
	good.ask(nil)
	select {
	case <-good.got:
	case err := <-good.end:
		t.Fatal(err)
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	bad := connect(t, addr, "b", "/weir-0123abcd.wasm")
	bad.ask(nil)
	select {
	case <-bad.got:
		t.Fatal("another node's certificate is let in")
	case err := <-bad.end:
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it is not refused")
	}
	for _, n := range s.Nodes() {
		if n.ID == "b" && n.Refused == "not this node's" {
			return
		}
	}
	t.Errorf("the page does not say why: %+v", s.Nodes())
}
