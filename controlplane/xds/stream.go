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
	sent     map[string]version // by nonce: what waits for an answer
	policies map[string]string  // by version of the filter's configuration: version of the policy

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

// send makes a stream's configuration and hands it to the cache, which sends what is new of it. Server.push is held.
func (s *Server) send(st *stream) {
	if s.build == nil {
		return
	}
	set, err := s.build(st.node)
	if err == nil {
		err = s.set(st, set)
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

func (s *Server) set(st *stream, set *translate.Set) error {
	versions, err := set.Versions()
	if err != nil {
		return err
	}
	s.mu.Lock()
	st.remember(versions[resourcev3.ExtensionConfigType], set.Policy)
	s.mu.Unlock()
	snap := snapshot(set, versions)
	if err := snap.ConstructVersionMap(); err != nil {
		return err
	}
	return s.cache.SetSnapshot(context.Background(), st.key(), snap)
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
		if v := snap.GetVersion(typ); maps.Equal(had, snap.GetVersionMap(typ)) && st.state(typ).Acked != v {
			*st.state(typ) = state{Sent: v, Acked: v, AckedAt: time.Now()}
		}
	}
}

func snapshot(set *translate.Set, versions map[string]string) *cachev3.Snapshot {
	snap := new(cachev3.Snapshot)
	for typ, ms := range set.Types() {
		resources := make([]types.Resource, len(ms))
		for i, m := range ms {
			resources[i] = m
		}
		snap.Resources[cachev3.GetResponseType(typ)] = cachev3.NewResources(versions[typ], resources)
	}
	return snap
}
