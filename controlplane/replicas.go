// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/store"
	pfleet "github.com/weirproxy/weir/policy/fleet"
)

// Channels of a store that replicas share.
const (
	channelReports   = "reports"   // pfleet.FromNode, to the one that leads
	channelDocuments = "documents" // documents, from it
	channelPresence  = "presence"  // presence, of everybody
)

// A presence says that a replica is there, which Envoys have a stream at it, and whether its controller works.
type presence struct {
	From, Name string
	Epoch      uint64 `json:",omitempty"` // of its controller; 0: it does not lead
	Nodes      []string
}

// documents are what the controller of an epoch has for Envoys that are elsewhere.
type documents struct {
	From      string
	Epoch     uint64
	Documents map[string][]byte
}

// How often replicas say that they are there, how soon when Envoys have come or gone, and when one that says nothing is gone.
const (
	presenceEvery = time.Second
	presenceLook  = 50 * time.Millisecond
	presenceLasts = 5 * time.Second
)

// peers are the other replicas.
type peers struct {
	mu    sync.Mutex
	all   map[string]*peer
	epoch uint64    // the greatest that a controller has been heard of
	heard time.Time // when that was last heard of
}

type peer struct {
	name  string
	at    time.Time
	nodes map[string]bool
}

// present takes in that a replica is there.
func (p *peers) present(now time.Time, m *presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.all {
		if now.Sub(other.at) > presenceLasts {
			delete(p.all, id)
		}
	}
	nodes := make(map[string]bool, len(m.Nodes))
	for _, n := range m.Nodes {
		nodes[n] = true
	}
	p.all[m.From] = &peer{m.Name, now, nodes}
	p.begun(now, m.Epoch)
}

// begun takes in that the controller of an epoch works, and says whether none of a later one has been heard of.
func (p *peers) begun(now time.Time, epoch uint64) bool {
	if epoch == 0 || epoch < p.epoch {
		return false
	}
	p.epoch, p.heard = epoch, now
	return true
}

// each gives all that are there.
func (p *peers) each(f func(*peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range p.all {
		if time.Since(other.at) <= presenceLasts {
			f(other)
		}
	}
}

// names are theirs, in order.
func (p *peers) names() []string {
	names := []string{}
	p.each(func(other *peer) { names = append(names, other.name) })
	slices.Sort(names)
	return names
}

// has says whether a node has a stream at one of them.
func (p *peers) has(node string) (has bool) {
	p.each(func(other *peer) { has = has || other.nodes[node] })
	return has
}

// nodes is how many nodes have a stream at one of them, about: one that has two counts twice.
func (p *peers) nodes() (n int) {
	p.each(func(other *peer) { n += len(other.nodes) })
	return n
}

// controller says which controller has been heard of lately; 0: none.
func (p *peers) controller() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.heard) > presenceLasts {
		return 0
	}
	return p.epoch
}

// meet tells the other replicas of this one, and hears of them and of what the leader has for Envoys, until ctx ends.
func (s *Server) meet(ctx context.Context, shared store.Shared) {
	var telling sync.WaitGroup
	telling.Go(func() { s.tellPresence(ctx, shared) })
	shared.Listen(ctx, s.hear, channelPresence, channelDocuments)
	telling.Wait()
}

// tellPresence says that this replica is there once a second, and at once when anything has changed.
func (s *Server) tellPresence(ctx context.Context, shared store.Shared) {
	tick := time.NewTicker(presenceLook)
	defer tick.Stop()
	var told time.Time
	var last presence
	for ctx.Err() == nil {
		m := presence{From: s.id, Name: s.config.Name, Nodes: s.xds.NodeIDs()}
		if c := s.leading(); c != nil {
			m.Epoch = c.Epoch()
		}
		if time.Since(told) >= presenceEvery || m.Epoch != last.Epoch || !slices.Equal(m.Nodes, last.Nodes) {
			s.publish(ctx, shared, channelPresence, m)
			told, last = time.Now(), m
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// publish sends a message. What is lost is said again, or in other words.
func (s *Server) publish(ctx context.Context, shared store.Shared, channel string, m any) {
	b, err := json.Marshal(m)
	if err == nil {
		err = shared.Publish(ctx, channel, b)
	}
	if err != nil {
		s.log.Debug("not told to other replicas", "channel", channel, "error", err)
	}
}

// hear takes in what other replicas say.
func (s *Server) hear(channel string, b []byte) {
	var err error
	switch channel {
	case channelPresence:
		var m presence
		if err = json.Unmarshal(b, &m); err == nil && m.From != s.id {
			s.peers.present(time.Now(), &m)
		}
	case channelDocuments:
		var m documents
		if err = json.Unmarshal(b, &m); err == nil && m.From != s.id {
			s.hearDocuments(&m)
		}
	}
	if err != nil {
		s.log.Warn("a message of another replica is not understood: do all have one version of weir?", "channel", channel, "error", err)
	}
}

// hearDocuments pushes what is for Envoys here, unless a later controller has begun: theirs must not be overwritten.
func (s *Server) hearDocuments(m *documents) {
	s.peers.mu.Lock()
	newest := s.peers.begun(time.Now(), m.Epoch)
	s.peers.mu.Unlock()
	if !newest {
		return
	}
	s.push(m.Documents)
}

// An outgoing is documents of a controller for Envoys elsewhere, the newest of each.
type outgoing struct {
	mu        sync.Mutex
	documents map[string][]byte
	wake      chan struct{}
}

func newOutgoing() *outgoing {
	return &outgoing{documents: map[string][]byte{}, wake: make(chan struct{}, 1)}
}

func (o *outgoing) put(node string, document []byte) {
	o.mu.Lock()
	o.documents[node] = document
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// documentsMost is about how many bytes go in one message.
const documentsMost = 1 << 20

// take takes some of them out.
func (o *outgoing) take() map[string][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	some, size := map[string][]byte{}, 0
	for node, b := range o.documents {
		if size >= documentsMost {
			break
		}
		some[node], size = b, size+len(b)
		delete(o.documents, node)
	}
	return some
}

// send sends them to the other replicas, until ctx ends.
func (s *Server) send(ctx context.Context, shared store.Shared, epoch uint64, o *outgoing) {
	for {
		for some := o.take(); len(some) > 0 && ctx.Err() == nil; some = o.take() {
			s.publish(ctx, shared, channelDocuments, documents{s.id, epoch, some})
		}
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
	}
}

// takenAtOnce bounds how many reports wait for a controller. In which order it takes them does not matter.
const takenAtOnce = 64

// hearReports gives a controller what other replicas pass on, until ctx ends.
func (s *Server) hearReports(ctx context.Context, shared store.Shared, c *fleet.Controller) {
	var waiting sync.WaitGroup
	defer waiting.Wait()
	places := make(chan struct{}, takenAtOnce)
	shared.Listen(ctx, func(_ string, b []byte) {
		places <- struct{}{}
		waiting.Go(func() {
			m, err := pfleet.DecodeFromNode(b)
			if err == nil {
				s.board.estimates.hear(time.Now(), m)
				_, err = c.Report(ctx, m) // who passed it on knows of the epoch
			}
			if err != nil {
				s.log.Debug("a report that was passed on", "error", err)
			}
			<-places
		})
	}, channelReports)
}

var errNobodyLeads = errors.New("no control plane hands out shares at the moment")

// passOn sends a report to the replica that leads. It says whether the node has to be told of that one's epoch. Only an epoch counts
// of which something was heard, for before that an earlier controller may still work.
func (s *Server) passOn(ctx context.Context, m *pfleet.FromNode, body []byte) (hello bool, epoch uint64, err error) {
	shared, ok := s.config.Store.(store.Shared)
	if !ok {
		return false, 0, errNobodyLeads
	}
	if epoch = s.peers.controller(); epoch == 0 {
		return false, 0, errNobodyLeads
	}
	err = shared.Publish(ctx, channelReports, body)
	return m.Report != nil && m.Report.Epoch < epoch, epoch, err
}
