// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import "unsafe"

// What Envoy gives it writes into memory that it asks the VM for. Bodies, headers of answers and values of shared data are used
// within the callback only, and most of what is given is those: they lie in one place that is used again in each callback, which
// stays in the processor's caches, and is not the garbage collector's. Headers of requests are used as long as their streams last.

// lentSize is how much can be lent in a callback: a usual body, and some buckets. What is more is allocated.
const lentSize = 64 << 10

var (
	lent    [lentSize / 8]uint64 // values of shared data are read as what they are, so they are aligned
	used    uintptr              // bytes of it
	lending bool                 // the host call that is running gives what is lent

	holding bool     // it gives the headers of a request
	held    *place   // where it has put them
	places  []*place // that are free
)

// A place has room for the headers of most requests, until the stream is done.
type place [2 << 10]byte

// maxPlaces bounds those that are kept for another use.
const maxPlaces = 256

// allocate is called by Envoy within the host calls that give something. size is not 0.
//
//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) unsafe.Pointer {
	if end := used + uintptr(size+7)&^7; lending && size <= lentSize && end <= lentSize {
		p := unsafe.Add(unsafe.Pointer(&lent), used)
		used = end
		return p
	}
	if holding && size <= uint32(len(place{})) {
		return unsafe.Pointer(takePlace())
	}
	return unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
}

func takePlace() *place {
	if n := len(places); n > 0 {
		held, places = places[n-1], places[:n-1]
	} else {
		held = new(place)
	}
	return held
}

// leavePlace has a place be used again.
func leavePlace(p *place) {
	if p != nil && len(places) < maxPlaces {
		places = append(places, p)
	}
}

// enter begins a callback, and gives its context. leave gets what else it gives.
func enter(id uint32) (c *context, before uintptr) {
	if c = find(id); c == nil {
		c = &stray
	}
	now, current = 0, c
	return c, used
}

// leave ends a callback. What was lent is zero from here on, so that no use of it goes unnoticed.
func leave(before uintptr) {
	clear(lent[before/8 : used/8])
	used = before
}
