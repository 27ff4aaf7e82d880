// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import "github.com/weirproxy/weir/filter"

// A context is what Envoy knows by an id: a plugin, or a stream of one.
type context struct {
	id      uint32
	root    uint32 // the plugin's
	kind    kind
	plugin  *filter.Plugin // nil: it has no policy, or not yet
	stream  *filter.Stream
	attempt filter.Attempt
	place   *place   // of the request's headers
	next    *context // in the same bucket, or of those that are free
}

type kind uint8

const (
	plugin kind = iota
	stream
	attempt
	nothing // a stream of a plugin that takes none
)

// The contexts by their ids, which Envoy counts up.
var contexts [1 << 10]*context

// free are contexts to be used again; there are never more than there were streams at once.
var free *context

func bucket(id uint32) **context { return &contexts[id%uint32(len(contexts))] }

// stray is the context of ids that are not there, which Envoy never asks for.
var stray = context{kind: nothing}

// current is the one whose callback is running.
var current = &stray

// find gives the context of an id; nil if there is none.
func find(id uint32) *context {
	c := *bucket(id)
	for c != nil && c.id != id {
		c = c.next
	}
	return c
}

func add(id uint32) *context {
	c := free
	if c == nil {
		c = &context{}
	} else {
		free = c.next
	}
	at := bucket(id)
	*c = context{id: id, next: *at}
	*at = c
	return c
}

func remove(id uint32) {
	for at := bucket(id); *at != nil; at = &(*at).next {
		if c := *at; c.id == id {
			*at = c.next
			*c = context{next: free}
			free = c
			return
		}
	}
}
