// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package filter

import (
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// A Considered is what a request is decided on: who asks, which limits apply, what it costs.
type Considered struct {
	Caller   policy.Caller
	Provider *policy.Provider
	Model    *policy.Model // nil: none of the provider's limits is for it
	API      dialect.API
	Class    policy.Class
	Path     policy.Path
	Request  dialect.Request
	Rating   policy.Rating
	Cost     policy.Cost
}

// A watcher is who is told.
type watcher func(*Considered)

func (w watcher) watches() bool { return w != nil }

// Watch has f told what each request is decided on, before it is. Then all are counted exactly, as if they had asked why. It is
// for tools that run the filter without Envoy.
func (v *VM) Watch(f func(*Considered)) { v.watch = f }

// tellWatch tells who watches.
func (s *Stream) tellWatch(ask *asker, m *policy.Model, path *policy.Path, q *dialect.Request, c *policy.Cost) {
	if !s.vm.watch.watches() {
		return
	}
	r := *q
	r.Model = strings.Clone(q.Model) // it lies in the body's memory
	s.vm.watch(&Considered{
		Caller: ask.named(), Provider: s.provider, Model: m, API: s.call.API, Class: s.class, Path: *path, Request: r, Rating: s.rating, Cost: *c,
	})
}
