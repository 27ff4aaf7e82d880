// SPDX-License-Identifier: Apache-2.0

package fleet

// A NodeState is what the ledger has on a node, for people.
type NodeState struct {
	Node    string
	Demand  int64 // units per window, as it last said
	Granted int64 // rate of the last grant, units per window
	Rate    int64 // the most that it may be spending, units per window
	Window  int64 // the most that it may hold of a window, with its earlier lives, units; 0 for a continuous limit
	Counted int64 // what its ring still counts of the window, with its earlier lives, units; 0 for a continuous limit
	Lease   int64 // ns until the last of its leases ends; 0: none runs
	Silent  bool  // too long without a report
	Behind  bool  // it has not acknowledged the last grant
}

// States says what each node may hold, by name.
func (l *Ledger) States(now int64) (states []NodeState) {
	for _, p := range l.peers {
		s := NodeState{
			Node: p.name, Demand: p.demand, Granted: p.target, Rate: p.rateBound(now),
			Silent: now-p.seen > int64(l.params.Silent), Behind: p.acked != p.version,
		}
		if l.quota.windowed() {
			spooky := p.spooky(now, l.memory())
			s.Window = p.capBase(now, l.memory(), &l.whole) + spooky
			s.Counted = p.trail.faded(now, l.memory()) + spooky
		}
		for i := range p.holds {
			s.Lease = max(s.Lease, p.holds[i].end-now)
		}
		states = append(states, s)
	}
	return states
}

// Empty says whether no node holds anything, nor has within a window.
func (l *Ledger) Empty() bool { return len(l.peers) == 0 }
