// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy/envoytest"
)

const wasm = "/opt/weir/weir-0123abcd.wasm"

// policies says which policy each node has.
func policies(want ...string) func([]Status) bool {
	return func(nodes []Status) bool {
		var got []string
		for _, n := range nodes {
			got = append(got, n.ID+"="+n.Policy)
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	}
}

func TestPolicyReachesAllNodes(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	early := connect(t, addr, "early", wasm)
	early.ask(nil)
	early.quiet() // there is no policy yet
	one, two := limited(1), limited(2)
	s.Update(build(one))
	for range 4 {
		early.answer(early.next(), "")
	}
	late, _ := start(t, addr, "late", wasm)
	eventually(t, s, "on one", policies("early="+versionOf(t, one), "late="+versionOf(t, one)))

	s.Update(build(two))
	for _, f := range []*fakeEnvoy{early, late} {
		r := f.next()
		if r.TypeUrl != resourcev3.ExtensionConfigType || len(r.Resources) != 1 {
			t.Errorf("got %s, want only the filter: no other type has changed", r.TypeUrl)
		}
		f.answer(r, "")
		f.quiet()
	}
	eventually(t, s, "on two", policies("early="+versionOf(t, two), "late="+versionOf(t, two)))
	s.Update(build(limited(2)))
	early.quiet() // the same again is nothing new
}

func TestRejection(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	good, bad := limited(1), limited(2)
	s.Update(build(good))
	f, _ := start(t, addr, "n", wasm)
	s.Update(build(bad))
	f.answer(f.next(), "no such limit")
	f.quiet() // it is not sent again
	nodes := eventually(t, s, "rejected", func(n []Status) bool { return find(n[0], "filter").Rejected() })
	filter := find(nodes[0], "filter")
	if nodes[0].Policy != versionOf(t, good) || filter.NACK.Message != "no such limit" || filter.NACK.Version != filter.Sent {
		t.Errorf("got %+v with %+v", nodes[0], filter.NACK)
	}
	if s.NACKs()["filter"] != 1 {
		t.Errorf("counted %v", s.NACKs())
	}
	// Back to the good one: the node has it, but the server has sent another since.
	s.Update(build(good))
	f.answer(f.next(), "")
	nodes = eventually(t, s, "good", func(n []Status) bool { return !find(n[0], "filter").Rejected() })
	if nodes[0].Policy != versionOf(t, good) || find(nodes[0], "filter").NACK == nil {
		t.Errorf("got %+v, want the good policy and the last rejection", nodes[0])
	}
}

func find(n Status, typ string) *Type {
	for i := range n.Types {
		if n.Types[i].Name == typ {
			return &n.Types[i]
		}
	}
	return &Type{}
}

func TestWhatAnEnvoyHasIsNotSentAgain(t *testing.T) {
	spec := limited(1)
	first := New(Options{})
	first.Update(build(spec))
	_, had := start(t, serve(t, first), "n", wasm)

	again := New(Options{}) // as after a restart
	again.Update(build(spec))
	f := connect(t, serve(t, again), "n", wasm)
	f.ask(had)
	for range 3 { // all but the filter
		f.answer(f.next(), "")
	}
	f.quiet()
	eventually(t, again, "known", policies("n="+versionOf(t, spec)))

	late := New(Options{}) // as after a restart, with a policy that is only then good
	f = connect(t, serve(t, late), "n", wasm)
	f.ask(had)
	f.quiet()
	late.Update(build(spec))
	for range 3 {
		f.answer(f.next(), "")
	}
	f.quiet()
	eventually(t, late, "known", policies("n="+versionOf(t, spec)))
	late.Update(build(limited(2)))
	f.answer(f.next(), "")
	eventually(t, late, "on another", policies("n="+versionOf(t, limited(2))))
}

func TestRefused(t *testing.T) {
	log := new(envoytest.Log)
	s := New(Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	for range 3 { // as often as it tries
		for id, c := range map[string]struct{ wasm, want string }{
			"none":    {"", "weir_wasm"},
			"unnamed": {"/opt/weir/filter.wasm", "has to be weir-<"},
			"":        {wasm, "no node id"},
		} {
			f := connect(t, addr, id, c.wasm)
			f.ask(nil)
			err := <-f.end
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %q in it", id, err, c.want)
			}
		}
	}
	nodes := s.Nodes()
	if len(nodes) != 3 || nodes[1].ID != "none" || !strings.Contains(nodes[1].Refused, "weir_wasm") {
		t.Errorf("got %+v", nodes)
	}
	if n := strings.Count(log.String(), "Envoy refused"); n != 3 {
		t.Errorf("logged %d times:\n%s", n, log)
	}
	start(t, addr, "none", wasm)
	if n := s.Nodes()[1]; n.Refused != "" {
		t.Errorf("still shown as refused: %+v", n)
	}
}

func TestNotes(t *testing.T) {
	s := New(Options{WasmHash: "99999999aaaa"})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	f, _ := start(t, addr, "n", wasm)
	start(t, addr, "n", "/weir-99999999.wasm")
	nodes := eventually(t, s, "two", func(n []Status) bool { return len(n) == 2 })
	if n := strings.Join(nodes[0].Notes, "|"); !strings.Contains(n, "has 0123abcd, this control plane comes with 99999999") {
		t.Errorf("got %q", n)
	}
	if n := strings.Join(nodes[1].Notes, "|"); n != "another connection has the same node id" {
		t.Errorf("got %q", n)
	}
	// Each gets its own file, and neither is disturbed when the other leaves.
	f.close()
	eventually(t, s, "one", func(n []Status) bool { return len(n) == 1 && len(n[0].Notes) == 0 })
	old := Node{ID: "n", Wasm: wasm, Version: "1.33.0", minor: 33}
	if notes, err := old.check(""); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "1.33.0 is older than 1.36.0") {
		t.Errorf("got %v, %v", notes, err)
	}
}

func TestALateEndTakesNothingFromTheNextStream(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	old, _ := start(t, addr, "n", wasm)
	again, _ := start(t, addr, "n", wasm) // it has come back before the server has seen it go
	old.close()
	eventually(t, s, "one", func(n []Status) bool { return len(n) == 1 })
	s.Update(build(limited(2)))
	again.answer(again.next(), "")
	eventually(t, s, "on two", policies("n="+versionOf(t, limited(2))))
}

func TestProblem(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	f, _ := start(t, addr, "n", wasm)
	s.Update(func(Node) (*translate.Set, error) { return nil, errors.New("cannot") })
	f.quiet()
	if n := s.Nodes()[0]; n.Problem != "cannot" || n.Policy != versionOf(t, limited(1)) {
		t.Errorf("got %+v", n)
	}
	s.Update(build(limited(1)))
	if n := s.Nodes()[0]; n.Problem != "" {
		t.Errorf("got %+v", n)
	}
}

func TestFullStateProtocolIsRefused(t *testing.T) {
	addr := serve(t, New(Options{}))
	f := connect(t, addr, "n", wasm)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(f.conn).StreamAggregatedResources(t.Context())
	must(t, err)
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "DELTA_GRPC") {
		t.Errorf("got %v", err)
	}
}

func TestManyNodesAndUpdates(t *testing.T) {
	s := New(Options{})
	addr := serve(t, s)
	s.Update(build(limited(1)))
	const nodes = 20
	for i := range nodes {
		f := connect(t, addr, fmt.Sprint("n", 10+i), wasm)
		f.ask(nil)
		go func() {
			for r := range f.got {
				if f.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}) != nil {
					return
				}
			}
		}()
		t.Cleanup(func() { f.close(); <-f.end; close(f.got) })
	}
	for i := range 50 {
		go s.Nodes()
		s.Update(build(limited(2)))
		s.Update(build(limited(3)))
		_ = i
	}
	want := versionOf(t, limited(3))
	eventually(t, s, "all on the last", func(all []Status) bool {
		for _, n := range all {
			if n.Policy != want {
				return false
			}
		}
		return len(all) == nodes
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if len(st.policies) > 3 || len(st.sent) > 4 {
			t.Errorf("remembers %d policies and %d responses", len(st.policies), len(st.sent))
		}
	}
}

// TestNothingIsLeft checks that a server that has ended leaves no goroutine, whatever its Envoys did.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("serve", func(t *testing.T) {
		s := New(Options{})
		addr := serve(t, s)
		s.Update(build(limited(1)))
		start(t, addr, "a", wasm)
		connect(t, addr, "b", wasm).ask(nil)
		connect(t, addr, "c", "").send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ClusterType}) // it is refused for that
	})
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}
