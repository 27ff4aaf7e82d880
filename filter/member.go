// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A member is the one worker of an Envoy that talks to the fleet's controller: it reports what all workers' callers ask for, and puts
// into the buckets what is granted. It is so by a lease in shared data, and all that must outlive it is there as well: who takes over
// goes on with the same leases (RATIONALE.md, "Why is what a fleet grants kept in the buckets?").
type member struct {
	vm     *VM
	plugin *Plugin
	state  memberState
	node   *fleet.Node
	params fleet.Params
	limits map[policy.Key]*policy.Limit // by entry
	keys   map[bucketKey]*memberKey
	quotas map[string]*quota
	given  map[*quota]bool // of them, those of which units are lent or drawn
	waits  map[waitKey]wait
	waited []*quota // for which somebody waited at the last look
	swept  int64

	document []byte // the last of the controller
	brought  uint32 // number of [SharesNew] then
	rates    []byte // as laid down

	offered    int64 // when demands were counted
	posted     int64
	posts      float64 // that may be sent now
	counted    int64   // when posts was brought up to date
	open       bool    // a post is under way
	heard      int64   // when the controller last took one
	taught     int64   // when it was told what has been learned
	ack        bool
	hello      bool
	urgent     bool // somebody waits for what can be asked for
	headcounts headcounts
	waiting    headcounts
	fresh      bool // there is a quota that the controller has not heard of
}

// A memberState is what an Envoy is to its controller, as it lies in shared data.
type memberState struct {
	layout      uint64
	vm          uint64 // that is the member
	expires     int64
	incarnation uint64
	epoch       uint64
	number      uint64 // of the last report
	message     uint64 // of the last message
}

const (
	memberLayout = 0x77680001 // changes with every change of the struct
	memberName   = "fm"

	memberLease = int64(3e9)
	memberRenew = int64(1e9)
	memberSkip  = 1 << 16 // numbers that the one before may have used and not written down

	eagerTick = 5 * time.Millisecond // while somebody asks
	eagerFor  = int64(1e9)

	reportTick = int64(250e6) // where nothing is shared

	offerEvery = int64(50e6)
	waitLasts  = 3 * tellWaiting
	keepQuota  = int64(30e9) // without any use
	sweepEvery = int64(1e9)
	maxQuotas  = 8000 // as many as fit into a message
	maxKeys    = 2 * maxQuotas
)

func (m *memberState) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(m)), unsafe.Sizeof(*m))
}

// tickMember does the member's work, if this worker is it, or can be.
func (v *VM) tickMember(now int64, p *Plugin) {
	if p == nil || p.policy == nil || !p.policy.Reports {
		return
	}
	if !p.policy.Shared { // nobody waits for what comes of it
		if now-v.heard < reportTick {
			return
		}
		defer func(eager int64) { v.heard, v.eager = now, eager }(v.eager)
	}
	v.tellOffers(now)
	v.tellHeadcounts(now)
	if !v.isMember(now, p) {
		return
	}
	m := v.member
	if m.plugin != p {
		m.adopt(p)
	}
	m.lookForShares(now)
	m.hear(now)
	m.look(now)
	m.report(now)
}

// isMember takes or renews the lease.
func (v *VM) isMember(now int64, p *Plugin) bool {
	if v.member != nil && now < v.member.state.expires-memberLease+memberRenew {
		return true
	}
	if v.member == nil && now < v.tryMember {
		return false
	}
	v.tryMember = now + memberRenew/4
	s, cas := memberState{layout: memberLayout}, uint32(policy.CreateCAS)
	if b, c, ok := v.host.Get(memberName); ok {
		cas = c
		if len(b) == len(s.bytes()) && (*memberState)(unsafe.Pointer(unsafe.SliceData(b))).layout == memberLayout {
			s = *(*memberState)(unsafe.Pointer(unsafe.SliceData(b)))
		}
	}
	if s.vm != v.id && s.vm != 0 && now < s.expires {
		v.member = nil
		return false
	}
	first, fresh := s.incarnation == 0, s.vm != v.id || v.member == nil
	if fresh {
		s.number, s.message = s.number+memberSkip, s.message+memberSkip
	} else {
		s = v.member.state
	}
	if first {
		s.incarnation = uint64(v.host.Wall())
	}
	s.vm, s.expires = v.id, now+memberLease
	if !v.host.Set(memberName, s.bytes(), cas) {
		v.member = nil
		return false
	}
	if fresh {
		v.member = newMember(v, p, s)
		if !first { // the one before may have known of more
			v.member.unsure(now, p.policy.Entries()...)
		}
	}
	v.member.state = s
	return true
}

func newMember(v *VM, p *Plugin, s memberState) *member {
	m := &member{vm: v, state: s, heard: v.host.Now(), keys: map[bucketKey]*memberKey{}, quotas: map[string]*quota{}, given: map[*quota]bool{}, waits: map[waitKey]wait{}}
	m.adopt(p)
	m.node = fleet.NewNode(v.nodeName(), s.incarnation, m.params)
	m.node.Resume(s.epoch, s.number)
	return m
}

// nodeName is what Envoy calls itself.
func (v *VM) nodeName() string { return strings.Clone(v.host.Property("xds\x00node\x00id")) }

// adopt makes the member go by a policy.
func (m *member) adopt(p *Plugin) {
	m.plugin, m.limits = p, map[policy.Key]*policy.Limit{}
	m.params = fleet.DefaultParams()
	m.params.Lease, m.params.Forget = p.policy.Fleet.Lease, p.policy.Fleet.Forget
	for _, e := range p.policy.Entries() {
		m.limits[e.Limit.Entry()] = e.Limit
	}
	for at, k := range m.keys {
		l := m.limits[k.step.Limit.Entry()]
		if l == nil {
			m.drop(at, k)
			m.unsure(m.vm.host.Now(), policy.Entry{Limit: k.step.Limit})
			continue
		}
		k.step.Limit, k.step.Since = l, p.policy.Since
		m.name(m.vm.host.Now(), k)
	}
}

// unsure notes that buckets of these limits may hold and remember what is not followed any more.
func (m *member) unsure(now int64, entries ...policy.Entry) {
	longest := int64(0)
	for _, e := range entries {
		for i := range e.Limit.Meters {
			if mt := &e.Limit.Meters[i]; mt.Kind == policy.Sliding {
				longest = max(longest, fleet.MemoryOf(int64(mt.Window()), int64(m.plugin.policy.Fleet.Jitter)))
			}
		}
	}
	m.node.Unsure(now + int64(m.params.Lease) + longest)
}

// drop forgets a bucket: its leases run out.
func (m *member) drop(at bucketKey, k *memberKey) {
	delete(m.keys, at)
	for name, q := range m.quotas {
		if q.key == k {
			m.dropQuota(name, q)
		}
	}
}

func (m *member) dropQuota(name string, q *quota) {
	delete(m.quotas, name)
	delete(m.given, q)
	if q.share != nil {
		m.node.Forget(q.share)
	}
}
