// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/weirproxy/weir/controlplane/translate"
)

// sharesType stands for the shares in the state of a stream. They are of the same type as the filter, but change by themselves:
// a node that has rejected a policy has not accepted it by accepting shares.
const sharesType = "weir.shares"

// Push sends a node its shares. A node that is not connected gets nothing. It waits for nobody.
func (s *Server) Push(node string, document []byte) {
	s.push.Lock()
	defer s.push.Unlock()
	var streams []*stream
	s.mu.Lock()
	if s.nodes[node] > 0 {
		s.shares[node] = document
		for _, st := range s.streams {
			if st.node.ID == node {
				streams = append(streams, st)
			}
		}
	}
	s.mu.Unlock()
	for _, st := range streams {
		if s.build == nil {
			continue
		}
		b := s.configuration(st.node)
		if b.err != nil {
			continue // its first configuration has said so
		}
		if err := s.set(st, b); err != nil {
			s.log.Error("no shares for this node", "node", node, "error", err)
		}
	}
}

// Connected says whether a node has a stream.
func (s *Server) Connected(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node] > 0
}

// NodeIDs are the nodes that have a stream, in order.
func (s *Server) NodeIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.nodes))
}

// NodeCount is how many nodes have a stream.
func (s *Server) NodeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.nodes)
}

// withShares gives a configuration with a node's shares. Only what differs is made anew: it is sent about once a second to each
// node. Server.push is held.
func (s *Server) withShares(n Node, b *built) (*cachev3.Snapshot, error) {
	s.mu.Lock()
	document := s.shares[n.ID]
	s.mu.Unlock()
	if document == nil {
		document = s.initial
	}
	shares, err := translate.Shares(document)
	if err != nil {
		return nil, err
	}
	snap, typ := b.snapshot, cachev3.GetResponseType(resourcev3.ExtensionConfigType)
	filters := snap.Resources[typ]
	filters.Items = maps.Clone(filters.Items)
	filters.Items[translate.SharesName] = types.ResourceWithTTL{Resource: shares}
	snap.Resources[typ] = filters
	versions := maps.Clone(snap.VersionMap[resourcev3.ExtensionConfigType])
	versions[translate.SharesName] = translate.Version(document)
	snap.VersionMap = maps.Clone(snap.VersionMap)
	snap.VersionMap[resourcev3.ExtensionConfigType] = versions
	return &snap, nil
}

// versionsOf says what a response brings.
func versionsOf(r *discoveryv3.DeltaDiscoveryResponse) (all []version) {
	own := len(r.GetResources()) == 0
	for _, resource := range r.GetResources() {
		if r.GetTypeUrl() == resourcev3.ExtensionConfigType && resource.GetName() == translate.SharesName {
			all = append(all, version{sharesType, resource.GetVersion()})
		} else {
			own = true
		}
	}
	if own {
		all = append(all, version{r.GetTypeUrl(), r.GetSystemVersionInfo()})
	}
	return all
}

// wholeOf says whether a request is for more than shares.
func wholeOf(r *discoveryv3.DeltaDiscoveryRequest) bool {
	if r.GetTypeUrl() != resourcev3.ExtensionConfigType {
		return true
	}
	for _, name := range r.GetResourceNamesSubscribe() {
		if name != translate.SharesName {
			return true
		}
	}
	return false
}
