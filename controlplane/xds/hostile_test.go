// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/genproto/googleapis/rpc/status"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/envoy/envoytest"
)

// Who has no certificate can make up names all day, each of megabytes: they fill neither memory nor log.
func TestLogFilledByRefusedNames(t *testing.T) {
	log := new(envoytest.Log)
	s := New(Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	long := strings.Repeat("x", 1<<20)
	for i := range 1000 {
		n := nodeOf(&corev3.Node{Id: fmt.Sprint(i, long), Cluster: long, Metadata: envoy.Metadata("/opt/"+long, long)})
		_, err := n.check("")
		if err == nil || len(err.Error()) > 2*maxPath {
			t.Fatalf("checked: %.100v", err)
		}
		s.refuse(n, err)
		s.refuse(n, errors.New(fmt.Sprint("another reason ", i)))
	}
	if got := log.String(); strings.Count(got, "\n") > maxRefused+1 || len(got) > (maxRefused+1)*2*maxPath || !strings.Contains(got, "more Envoys are refused") {
		t.Errorf("%d lines, %d bytes", strings.Count(got, "\n"), len(got))
	}
	size := 0
	for _, n := range s.Nodes() {
		size += len(n.ID) + len(n.Cluster) + len(n.Wasm) + len(n.Refused)
	}
	if n := len(s.Nodes()); n != maxRefused || size > n*4*maxPath {
		t.Errorf("%d are shown, with %d bytes", n, size)
	}
}

// An Envoy may say that its filter is in another folder each time; a configuration for each is not kept.
func TestConfigurationsKeptForMadeUpPaths(t *testing.T) {
	s := New(Options{})
	s.Update(build(limited(1)))
	s.push.Lock()
	defer s.push.Unlock()
	for i := range 10 * maxBuilt {
		if b := s.configuration(Node{Wasm: fmt.Sprintf("/%d/weir-01234567.wasm", i)}); b.err != nil {
			t.Fatal(b.err)
		}
	}
	if len(s.built) > maxBuilt {
		t.Errorf("%d are kept", len(s.built))
	}
}

// What a stream says of itself is bounded: types that there are not, responses that it never answers, words of its rejections.
func TestStreamThatSaysTooMuch(t *testing.T) {
	log := new(envoytest.Log)
	s := New(Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := callbacks{s}
	if err := c.OnStreamDeltaRequest(1, &discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "n", Metadata: envoy.Metadata(wasm, "")}}); err != nil {
		t.Fatal(err)
	}
	st := s.streams[1]
	for i := range 10 * maxUnanswered {
		_ = c.OnStreamDeltaRequest(1, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: fmt.Sprint("type", i), InitialResourceVersions: map[string]string{"a": "b"}})
		c.OnStreamDeltaResponse(1, nil, &discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: resourcev3.ClusterType, Nonce: fmt.Sprint(i), SystemVersionInfo: "v", Resources: []*discoveryv3.Resource{{Name: "a", Version: "v"}},
		})
	}
	_ = c.OnStreamDeltaRequest(1, &discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: resourcev3.ClusterType, ResponseNonce: fmt.Sprint(10*maxUnanswered - 1), ErrorDetail: &status.Status{Message: strings.Repeat("x", 1<<20)},
	})
	if len(st.had) > len(names) || len(st.sent) > maxUnanswered || len(st.types) > len(names) || len(log.String()) > 3*maxMessage || !strings.Contains(log.String(), "rejects") {
		t.Errorf("%d types had, %d responses, %d types, a log of %d bytes", len(st.had), len(st.sent), len(st.types), len(log.String()))
	}
}
