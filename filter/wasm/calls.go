// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
	"strconv"
	"time"
	"unsafe"
)

// A call is one that was posted and has no answer yet.
type call struct {
	plugin uint32
	until  int64 // an answer, or that there is none, would have come by then
	answer func(status int, body []byte)
}

// calls are by their numbers, which no two of a VM share.
var calls = map[uint32]call{}

// patience is for how long after its time-out a call is still known: a worker that stood still gets its answers later.
const patience = 5 * time.Second

var looked int64 // when: for lost calls

// dropLost forgets calls that get no answer any more: who leaves before Envoy has one gets none.
func dropLost() {
	now := host{}.Now()
	if now-looked < int64(time.Second) {
		return
	}
	looked = now
	for token, c := range calls {
		if now > c.until {
			delete(calls, token)
		}
	}
}

//go:wasmimport env proxy_http_call
func httpCall(cluster unsafe.Pointer, clusterSize int32, headers unsafe.Pointer, headersSize int32, body unsafe.Pointer, bodySize int32,
	trailers unsafe.Pointer, trailersSize int32, timeout uint32, token unsafe.Pointer) uint32

var token uint32 // where the host writes that of a new call

// Post is of the plugin whose callback is running: if that goes before the answer comes, none does.
func (host) Post(cluster, path, contentType string, body []byte, timeout time.Duration, answer func(status int, body []byte)) bool {
	h := encode([][2]string{{":method", "POST"}, {":path", path}, {":authority", cluster}, {":scheme", "http"}, {"content-type", contentType}})
	trailers := encode(nil)
	to, n := data(cluster)
	if httpCall(to, n, unsafe.Pointer(unsafe.SliceData(h)), int32(len(h)), unsafe.Pointer(unsafe.SliceData(body)), int32(len(body)),
		unsafe.Pointer(unsafe.SliceData(trailers)), int32(len(trailers)), uint32(timeout.Milliseconds()), unsafe.Pointer(&token)) != 0 {
		return false
	}
	calls[token] = call{current.root, host{}.Now() + int64(timeout+patience), answer}
	return true
}

// answered hands on an answer: one without headers is none.
func answered(token uint32, size int32) {
	c, ok := calls[token]
	if !ok {
		return // to a plugin that has gone
	}
	delete(calls, token)
	status, _ := strconv.Atoi(header(httpCallResponseHeaders, ":status"))
	c.answer(status, buffer(httpCallResponseBody, 0, int(size)))
}

// dropCalls forgets those of a plugin that goes.
func dropCalls(plugin uint32) {
	for token, c := range calls {
		if c.plugin == plugin {
			delete(calls, token)
		}
	}
}
