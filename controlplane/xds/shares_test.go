// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/controlplane/translate"
)

// sharesOf gives the shares in a response, and whether the policy is in it as well.
func sharesOf(t *testing.T, r *discoveryv3.DeltaDiscoveryResponse) (shares string, policy bool) {
	t.Helper()
	for _, resource := range r.Resources {
		if resource.Name != translate.SharesName {
			policy = true
			continue
		}
		e, w, b := new(corev3.TypedExtensionConfig), new(wasmfilterv3.Wasm), new(wrapperspb.BytesValue)
		must(t, resource.Resource.UnmarshalTo(e))
		must(t, e.TypedConfig.UnmarshalTo(w))
		must(t, w.Config.Configuration.UnmarshalTo(b))
		shares = string(b.Value)
	}
	return shares, policy
}

// share connects, subscribes to shares as well, and accepts the first configuration; it gives the first shares.
func share(t *testing.T, addr, id string) (*fakeEnvoy, string) {
	t.Helper()
	f, _ := start(t, addr, id, wasm)
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{translate.SharesName}})
	r := f.next()
	f.answer(r, "")
	shares, policy := sharesOf(t, r)
	if policy {
		t.Error("the policy came again with the first shares")
	}
	return f, shares
}

func (f *fakeEnvoy) nextShares() string {
	f.t.Helper()
	r := f.next()
	shares, policy := sharesOf(f.t, r)
	if policy {
		f.t.Error("the policy came with the shares")
	}
	f.answer(r, "")
	return shares
}

// Each node gets its own shares, on the stream that named it in its first request alone; nothing else is sent with them.
func TestSharesOfEachNode(t *testing.T) {
	s := New(Options{Shares: []byte("none")})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	a, first := share(t, addr, "a")
	b, _ := share(t, addr, "b")
	if first != "none" {
		t.Errorf("began with %q", first)
	}
	s.Push("a", []byte("for a"))
	s.Push("b", []byte("for b"))
	s.Push("c", []byte("for nobody"))
	if got := a.nextShares() + ", " + b.nextShares(); got != "for a, for b" {
		t.Errorf("got %s", got)
	}
	s.Push("a", []byte("for a"))
	a.quiet() // the same again is nothing new
	b.quiet()
	if !s.Connected("a") || s.Connected("c") || s.NodeCount() != 2 {
		t.Errorf("%d nodes", s.NodeCount())
	}
	nodes := eventually(t, s, "both", policies("a="+versionOf(t, limited(1)), "b="+versionOf(t, limited(1))))
	if st := find(nodes[0], "shares"); st.Acked == "" || st.Acked != st.Sent {
		t.Errorf("got %+v", st)
	}
}

// What was pushed while an answer was awaited comes with that answer, and only the newest of it.
func TestSharesWhileAnAnswerIsAwaited(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	f, _ := share(t, addr, "n")
	s.Push("n", []byte("1"))
	r := f.next()
	s.Push("n", []byte("2"))
	s.Push("n", []byte("3"))
	f.quiet()
	f.answer(r, "")
	if got := f.nextShares(); got != "3" {
		t.Errorf("got %q", got)
	}
	f.quiet()
}

// Shares that are rejected are not sent again and again, and the next ones are sent. Who accepts shares has not accepted the
// policy that it rejected.
func TestRejectedPolicyAndShares(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	good := versionOf(t, limited(1))
	s.Update(build(limited(1)))
	f, _ := share(t, addr, "n")
	s.Update(build(limited(2)))
	f.answer(f.next(), "no such limit")
	s.Push("n", []byte("1"))
	f.nextShares()
	f.quiet()
	nodes := eventually(t, s, "on the old policy", policies("n="+good))
	if !find(nodes[0], "filter").Rejected() || find(nodes[0], "shares").Rejected() {
		t.Errorf("got %+v", nodes[0])
	}
	s.Push("n", []byte("2"))
	f.answer(f.next(), "out of sorts")
	f.quiet()
	nodes = eventually(t, s, "rejected", func(n []Status) bool { return find(n[0], "shares").Rejected() })
	if nodes[0].Policy != good || s.NACKs()["shares"] != 1 || s.NACKs()["filter"] != 1 {
		t.Errorf("got %+v, %v", nodes[0], s.NACKs())
	}
	s.Push("n", []byte("3"))
	if got := f.nextShares(); got != "3" {
		t.Errorf("got %q", got)
	}
}

// An Envoy that comes back with shares of before gets those of now, and its policy is not sent again.
func TestSharesAfterAReconnect(t *testing.T) {
	s := New(Options{Shares: []byte("none")})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	f, had := start(t, addr, "n", wasm)
	s.Push("n", []byte("1"))
	f.close()
	eventually(t, s, "gone", func(n []Status) bool { return len(n) == 0 })
	had[translate.SharesName] = "something"
	f = connect(t, addr, "n", wasm)
	f.ask(had)
	for range 3 {
		f.answer(f.next(), "")
	}
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{translate.SharesName}})
	if got := f.nextShares(); got != "none" {
		t.Errorf("got %q, want what a node starts with: what was sent to the stream before is over", got)
	}
	eventually(t, s, "known", policies("n="+versionOf(t, limited(1))))
}

// An Envoy with a configuration of its own asks for each filter on a stream of its own. It is one Envoy.
func TestSharesOnAStreamOfTheirOwn(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	f := connect(t, addr, "n", wasm)
	f.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{translate.FilterName}})
	f.answer(f.next(), "")
	g := connect(t, addr, "n", wasm)
	g.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ExtensionConfigType, ResourceNamesSubscribe: []string{translate.SharesName}})
	g.nextShares()
	s.Push("n", []byte("1"))
	if got := g.nextShares(); got != "1" {
		t.Errorf("got %q", got)
	}
	f.quiet()
	nodes := eventually(t, s, "one", policies("n="+versionOf(t, limited(1))))
	if len(nodes[0].Notes) > 0 {
		t.Errorf("got %q", nodes[0].Notes)
	}
}

// Nothing is left of streams that end while shares are pushed to them.
func TestPushesToStreamsThatEnd(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			s.Push("n", fmt.Appendf(nil, "%d", i))
		}
	}()
	const streams = 20
	for range streams {
		f := connect(t, addr, "n", wasm)
		f.ask(nil)
		f.next()
		f.close()
	}
	<-done
	eventually(t, s, "all gone", func(n []Status) bool { return len(n) == 0 && s.NodeCount() == 0 })
	for id := range int64(streams + 1) {
		if _, err := s.cache.GetSnapshot((&stream{id: id}).key()); err == nil {
			t.Errorf("stream %d has a snapshot left", id)
		}
	}
	if len(s.shares) > 0 {
		t.Errorf("shares of %d nodes are left", len(s.shares))
	}
}
