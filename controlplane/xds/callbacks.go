// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"log/slog"
	"maps"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirproxy/weir/controlplane/translate"
)

// callbacks are what go-control-plane calls, for one stream always one after another.
type callbacks struct{ *Server }

var _ serverv3.Callbacks = callbacks{}

func (c callbacks) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamDeltaRequest comes before the request is answered.
func (c callbacks) OnStreamDeltaRequest(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
	c.mu.Lock()
	st := c.streams[id]
	c.mu.Unlock()
	if st == nil {
		var err error
		if st, err = c.connect(id, r.GetNode()); err != nil {
			return status.Error(codes.FailedPrecondition, "weir: "+err.Error())
		}
		// The first request alone names the node; from it the server takes the key of the snapshot for all others.
		r.Node = &corev3.Node{Id: st.key()}
	}
	c.answered(st, r)
	return nil
}

// OnStreamDeltaResponse comes before a response is sent.
func (c callbacks) OnStreamDeltaResponse(id int64, _ *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[id]
	if st == nil {
		return
	}
	all := versionsOf(r)
	if len(st.sent) >= maxUnanswered {
		clear(st.sent) // an Envoy answers each response before it gets the next of its type
	}
	st.sent[r.GetNonce()] = all
	for _, v := range all {
		delete(st.had, v.typ)
		state := st.state(v.typ)
		state.Sent, state.SentAt = v.version, time.Now()
		c.log.Debug("sent", "node", st.node.ID, "type", name(v.typ), "version", v.version)
	}
}

// maxUnanswered bounds the responses of a stream that wait for an answer.
const maxUnanswered = 100

func (c callbacks) OnDeltaStreamClosed(id int64, _ *corev3.Node) {
	c.mu.Lock()
	st := c.streams[id]
	if st != nil {
		c.leave(st)
	}
	c.mu.Unlock()
	if st == nil {
		return
	}
	c.cache.ClearSnapshot(st.key())
	c.log.Info("Envoy has gone", "node", st.node.ID, "after", time.Since(st.since).Round(time.Millisecond))
}

// leave forgets a stream, and with the last one of a node its shares. Server.mu is held.
func (s *Server) leave(st *stream) {
	delete(s.streams, st.id)
	if s.nodes[st.node.ID]--; s.nodes[st.node.ID] <= 0 {
		delete(s.nodes, st.node.ID)
		delete(s.shares, st.node.ID)
	}
}

// connect takes up a stream, or says why it is refused.
func (s *Server) connect(id int64, n *corev3.Node) (*stream, error) {
	st := &stream{
		id: id, node: nodeOf(n), since: time.Now(),
		types: map[string]*state{}, sent: map[string][]version{}, policies: map[string]string{}, had: map[string]map[string]string{},
	}
	var err error
	if st.notes, err = st.node.check(s.wasmHash); err != nil {
		s.refuse(st.node, err)
		return nil, err
	}
	s.push.Lock()
	defer s.push.Unlock()
	s.mu.Lock()
	s.streams[id] = st
	s.nodes[st.node.ID]++
	delete(s.refused, st.node.ID)
	s.mu.Unlock()
	s.log.Info("Envoy connected", "node", st.node.ID, "version", st.node.Version, "filter", st.node.Wasm)
	for _, n := range st.notes {
		s.log.Warn("Envoy has something odd", "node", st.node.ID, "about", n)
	}
	s.send(st)
	return st, nil
}

// answered takes down what a request says about an earlier response.
func (s *Server) answered(st *stream, r *discoveryv3.DeltaDiscoveryRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.whole = st.whole || wholeOf(r)
	if r.GetResponseNonce() == "" {
		had := maps.Clone(r.GetInitialResourceVersions())
		delete(had, translate.SharesName)
		if _, known := names[r.GetTypeUrl()]; known && len(had) > 0 {
			st.had[r.GetTypeUrl()] = had
			s.compare(st)
		}
		return
	}
	all, ok := st.sent[r.GetResponseNonce()]
	if !ok {
		return
	}
	delete(st.sent, r.GetResponseNonce())
	for _, v := range all {
		s.outcome(st, v, r)
	}
}

// outcome takes down what an Envoy made of a version. Server.mu is held.
func (s *Server) outcome(st *stream, v version, r *discoveryv3.DeltaDiscoveryRequest) {
	state := st.state(v.typ)
	if e := r.GetErrorDetail(); e != nil {
		s.nacks[name(v.typ)]++
		message := cut(e.GetMessage(), maxMessage)
		state.NACK = &NACK{Version: v.version, Message: message, At: time.Now()}
		s.log.Error("Envoy rejects this configuration and keeps the one it has",
			"node", st.node.ID, "type", name(v.typ), "version", v.version, "error", message)
		return
	}
	state.Acked, state.AckedAt = v.version, time.Now()
	level := slog.LevelInfo
	if v.typ == sharesType { // about once a second
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, "Envoy has accepted", "node", st.node.ID, "type", name(v.typ), "version", v.version, "policy", st.policies[v.version])
}

// The protocol that sends everything each time is not served: it has no answer to a rejection but to send it again.

var errFullState = status.Error(codes.Unimplemented, "weir: write api_type: DELTA_GRPC")

func (callbacks) OnStreamOpen(context.Context, int64, string) error { return errFullState }
func (callbacks) OnStreamClosed(int64, *corev3.Node)                {}
func (callbacks) OnStreamRequest(int64, *discoveryv3.DiscoveryRequest) error {
	return errFullState
}
func (callbacks) OnStreamResponse(context.Context, int64, *discoveryv3.DiscoveryRequest, *discoveryv3.DiscoveryResponse) {
}
func (callbacks) OnFetchRequest(context.Context, *discoveryv3.DiscoveryRequest) error {
	return errFullState
}
func (callbacks) OnFetchResponse(*discoveryv3.DiscoveryRequest, *discoveryv3.DiscoveryResponse) {}
