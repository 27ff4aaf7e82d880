// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"

	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/policy/fleet"
)

const (
	epoch = 1 // of this controller: there is no other
	lease = time.Hour
)

// A pusher knows what one Envoy holds.
type pusher struct {
	xds *xds.Server

	mu          sync.Mutex
	node        string
	incarnation uint64
	number      uint64 // of its last report
	keys        map[string]*key
	fresh       bool          // there is something to be said at once
	every       time.Duration // between pushes; 0: none
	pushed      int
	bytes       int // of the last document
}

// A key is a quota that the Envoy has reported.
type key struct {
	window  int64
	granted uint64 // version
	told    uint64 // that the Envoy has put in force, by its last report
}

// counts are what GET /pushes tells.
type counts struct {
	Keys    int    `json:"keys"`    // with a grant in force
	Pushed  int    `json:"pushed"`  // documents
	Bytes   int    `json:"bytes"`   // of the last
	Granted uint64 `json:"granted"` // grants, over all keys
	Told    uint64 `json:"told"`    // that are in force, or were before a newer one, as reports say
}

// hear takes a report. hello: it takes another for the controller.
func (p *pusher) hear(m *fleet.FromNode) (hello bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Report == nil {
		return false
	}
	if m.Report.Epoch != epoch {
		return true
	}
	p.node, p.incarnation, p.number = m.Node, m.Incarnation, m.Report.Number
	for i := range m.Report.Holdings {
		h := &m.Report.Holdings[i]
		k := p.keys[h.Key]
		if k == nil {
			name, ok := fleet.ParseName(h.Key)
			if !ok {
				continue
			}
			k = &key{window: name.Window}
			p.keys[h.Key] = k
		}
		k.told = h.Version
		p.fresh = p.fresh || k.granted == 0 || p.every == 0 && k.told < k.granted
	}
	return false
}

// run pushes: what is new at once, and all as often as it is told to.
func (p *pusher) run() {
	for last := time.Now(); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		due := p.every > 0 && time.Since(last) >= p.every
		if due {
			last = last.Add(p.every * (time.Since(last) / p.every)) // late ones are not made up for
		} else if p.every == 0 {
			last = time.Now()
		}
		var document []byte
		if due || p.fresh {
			document = p.document(due)
		}
		node := p.node
		p.mu.Unlock()
		if document != nil {
			p.xds.Push(node, document)
		}
	}
}

// document has what the Envoy has not told that it has; again: and a new grant of everything.
func (p *pusher) document(again bool) []byte {
	m := fleet.ToNode{Shares: fleet.Shares{Epoch: epoch, Incarnation: p.incarnation}}
	for name, k := range p.keys {
		if again || k.granted == 0 {
			k.granted++
		}
		if k.granted == k.told {
			continue
		}
		const limit = 1_000_000_000
		g := fleet.Grant{
			Key: name, Version: k.granted, Number: p.number, Lease: int64(lease), Forget: int64(lease), Rate: limit / 2, Burst: limit / 8, Cap: limit / 2,
		}
		if k.granted == 1 {
			g.Tokens = g.Burst
		}
		m.Shares.Grants = append(m.Shares.Grants, g)
	}
	document := m.Encode()
	p.fresh, p.pushed, p.bytes = false, p.pushed+1, len(document)
	return document
}

func (p *pusher) counts() (c counts) {
	c.Pushed, c.Bytes = p.pushed, p.bytes
	for _, k := range p.keys {
		c.Granted, c.Told = c.Granted+k.granted, c.Told+k.told
		if k.told > 0 {
			c.Keys++
		}
	}
	return c
}
