// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/weirproxy/weir/controlplane/translate"
)

// A stream is one connection of one Envoy. Its fields belong to Server.mu.
type stream struct {
	id       int64
	node     Node
	since    time.Time
	notes    []string
	problem  string // why the newest policy could not be translated for it
	types    map[string]*state
	sent     map[string][]version // by nonce: what waits for an answer
	policies map[string]string    // by version of the filter's configuration: version of the policy

	whole bool // it has asked for more than shares: an Envoy with a configuration of its own has a stream for each filter

	// had is what the Envoy has from an earlier stream: by type, the versions of its resources.
	had map[string]map[string]string
}

// A state is what a stream made of one type of resources. It is what Status shows.
type state struct {
	Sent, Acked     string
	SentAt, AckedAt time.Time
	NACK            *NACK
}

// A version is of one type of resources.
type version struct{ typ, version string }

// key is the stream's in the cache.
func (st *stream) key() string { return strconv.FormatInt(st.id, 10) }

func (st *stream) state(typ string) *state {
	if st.types[typ] == nil {
		st.types[typ] = new(state)
	}
	return st.types[typ]
}

// connected gives the streams in the order in which they came.
func (s *Server) connected() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := make([]*stream, 0, len(s.streams))
	for _, id := range slices.Sorted(maps.Keys(s.streams)) {
		streams = append(streams, s.streams[id])
	}
	return streams
}

// files are what of a node its configuration depends on.
type files struct{ wasm, ca string }

// A built is a configuration that is ready to be sent, but for the shares.
type built struct {
	snapshot cachev3.Snapshot
	policy   string
	err      error
}

// maxBuilt bounds the configurations that are kept: files are what Envoys say.
const maxBuilt = 64

// configuration gives what build makes for a node. Server.push is held.
func (s *Server) configuration(n Node) *built {
	key := files{n.Wasm, n.CAFile}
	b := s.built[key]
	if b == nil {
		if len(s.built) >= maxBuilt {
			clear(s.built)
		}
		b = new(built)
		s.built[key] = b
		var set *translate.Set
		if set, b.err = s.build(n); b.err != nil {
			return b
		}
		var versions map[string]string
		if versions, b.err = set.Versions(); b.err != nil {
			return b
		}
		b.policy, b.snapshot = set.Policy, snapshot(set, versions)
		b.err = b.snapshot.ConstructVersionMap()
	}
	return b
}

// send hands a stream's configuration to the cache, which sends what is new of it. Server.push is held.
func (s *Server) send(st *stream) {
	if s.build == nil {
		return
	}
	b := s.configuration(st.node)
	err := b.err
	if err == nil {
		s.mu.Lock()
		st.remember(b.snapshot.GetVersion(resourcev3.ExtensionConfigType), b.policy)
		s.mu.Unlock()
		err = s.set(st, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.problem = ""
	if err != nil {
		st.problem = err.Error()
		s.log.Error("no configuration for this node: it keeps the one it has", "node", st.node.ID, "error", err)
	}
	s.compare(st)
}

// set gives the cache a configuration with the node's shares.
func (s *Server) set(st *stream, b *built) error {
	snap, err := s.withShares(st.node, b)
	if err != nil {
		return err
	}
	err = s.cache.SetSnapshot(context.Background(), st.key(), snap)
	s.mu.Lock()
	gone := s.streams[st.id] == nil
	s.mu.Unlock()
	if gone { // it ended meanwhile: nobody else would take this away again
		s.cache.ClearSnapshot(st.key())
	}
	return err
}

// remember keeps which policy a version of the filter's configuration stands for, and forgets what cannot come up again.
func (st *stream) remember(version, policy string) {
	ecds := st.state(resourcev3.ExtensionConfigType)
	maps.DeleteFunc(st.policies, func(v, _ string) bool { return v != ecds.Sent && v != ecds.Acked })
	st.policies[version] = policy
}

// compare finds out which types an Envoy has just as it would get them, from an earlier stream: these are not sent, so they
// will not be answered either. Server.mu is held.
func (s *Server) compare(st *stream) {
	snap, err := s.cache.GetSnapshot(st.key())
	if err != nil {
		return // nothing to send yet
	}
	for typ, had := range st.had {
		v, now := snap.GetVersion(typ), maps.Clone(snap.GetVersionMap(typ))
		delete(now, translate.SharesName) // they are of the moment
		if maps.Equal(had, now) && st.state(typ).Acked != v {
			*st.state(typ) = state{Sent: v, Acked: v, AckedAt: time.Now()}
		}
	}
}

func snapshot(set *translate.Set, versions map[string]string) (snap cachev3.Snapshot) {
	for typ, ms := range set.Types() {
		resources := make([]types.Resource, len(ms))
		for i, m := range ms {
			resources[i] = m
		}
		snap.Resources[cachev3.GetResponseType(typ)] = cachev3.NewResources(versions[typ], resources)
	}
	return snap
}
