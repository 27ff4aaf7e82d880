// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A directory finds the limits of a policy by the names that nodes use.
type directory struct {
	policy  *policy.Policy
	spec    *policy.Spec
	byKey   map[keyOf]*policy.Entry
	byEntry map[keyOf]*policy.Entry
}

type keyOf struct {
	tier policy.Tier
	key  policy.Key
}

func newDirectory(p *policy.Policy, spec *policy.Spec) *directory {
	d := &directory{p, spec, map[keyOf]*policy.Entry{}, map[keyOf]*policy.Entry{}}
	entries := p.Entries()
	for i := range entries {
		e := &entries[i]
		if e.Key != 0 {
			d.byKey[keyOf{e.Tier, e.Key}] = e
		} else {
			d.byEntry[keyOf{e.Tier, policy.EntryKey(p.Hasher, e.Tier, e.Name)}] = e
		}
	}
	return d
}

// find gives the meter that a name is of, and the entry that it belongs to; nil if the policy shares no such limit. Whose own
// entry there is has that, whatever the node says.
func (d *directory) find(n fleet.Name) (*policy.Entry, *policy.Meter) {
	if d == nil || d.policy.Mode == policy.Off {
		return nil, nil
	}
	e := d.byKey[keyOf{n.Tier, n.Key}]
	if e == nil {
		e = d.byEntry[keyOf{n.Tier, n.Entry}]
	}
	if e == nil || e.Limit.Scope != policy.FleetWide || e.Limit.Mode == policy.Off {
		return nil, nil
	}
	for i := range e.Limit.Meters {
		m := &e.Limit.Meters[i]
		if m.Dimension == n.Dimension && m.Sub() == n.Sub && m.Window().Milliseconds() == n.Window && (n.Period > 0) == (m.Kind == policy.Fixed) {
			return e, m
		}
	}
	return nil, nil
}

// label is what people call a quota. Of keys that come from requests it shows the fingerprint.
func label(n fleet.Name, e *policy.Entry) string {
	if e.Key == 0 {
		return n.Tier.String() + " " + e.Name + " " + fingerprint(n.Key)
	}
	return n.Tier.String() + " " + e.Name
}

func fingerprint(k policy.Key) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[uint64(k)>>(60-4*i)&0xf]
	}
	return "#" + string(b[:])
}

// params are the protocol's times under this policy.
func (d *directory) params() fleet.Params {
	p := fleet.DefaultParams()
	p.Lease, p.Forget = d.policy.Fleet.Lease, d.policy.Fleet.Forget
	return p
}

// quotaOf is what is shared of a meter.
func (d *directory) quotaOf(e *policy.Entry, m *policy.Meter) fleet.Quota {
	f, certain := &d.policy.Fleet, m.Limit()
	if first, probed := e.Limit.Probed(m.Dimension); probed {
		certain = first
	}
	q := fleet.Quota{
		Limit: m.Limit(), Window: int64(m.Window()), Burst: m.Burst(), Nodes: f.MaxEnvoys,
		Floors: int64(float64(certain) * float64(f.Floor) / float64(policy.Whole)),
	}
	if m.Kind == policy.Sliding {
		q.Memory = fleet.MemoryOf(q.Window, int64(f.Jitter))
	}
	return q
}

// clockSkew is how far the clocks of nodes may be off that say which fixed window it is.
const clockSkew = 5 * time.Second

// inPeriod says whether a fixed window is the one of now, or one that begins or ended within clockSkew.
func inPeriod(m *policy.Meter, n fleet.Name, wall time.Time) bool {
	for _, at := range []time.Time{wall.Add(-clockSkew), wall, wall.Add(clockSkew)} {
		if _, until := m.WindowAt(at.UnixNano()); until/int64(time.Second) == n.Period {
			return true
		}
	}
	return false
}
