// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

// Command wasm is the filter as Envoy loads it: package filter behind the proxy-wasm ABI 0.2.0, of which it is as much as it
// needs. What is not exported Envoy does not call. Build it with internal/wasmflow.
package main

import "github.com/weirproxy/weir/filter"

func main() {}

// state is made at the first plugin start: during initialisation Envoy allows no host calls.
var state *filter.VM

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

// onContextCreate begins a plugin, or a stream of one.
//
//go:wasmexport proxy_on_context_create
func onContextCreate(id, parent uint32) {
	p := find(parent)
	c := add(id)
	switch c.root = parent; {
	case parent == 0:
		c.root = id
	case p == nil || p.plugin == nil:
		c.kind = nothing
	case p.plugin.Attempts():
		c.kind, c.attempt = attempt, p.plugin.NewAttempt(id)
	default:
		c.kind, c.stream = stream, p.plugin.NewStream(id)
	}
}

// onConfigure starts a plugin. Where it fails, Envoy refuses the configuration.
//
//go:wasmexport proxy_on_configure
func onConfigure(id uint32, size int32) bool {
	c, before := enter(id)
	if state == nil {
		state = filter.NewVM(host{})
	}
	ok := c.kind == plugin && configure(c, pluginConfiguration(size))
	leave(before)
	return ok
}

func configure(c *context, config []byte) bool {
	var err error
	if c.plugin, err = state.Configure(c.id, config); err != nil {
		host{}.Log(filter.Error, "weir: bad policy: "+err.Error())
		return false
	}
	if !c.plugin.Attempts() {
		host{}.SetTick(filter.TickEvery)
	}
	return true
}

//go:wasmexport proxy_on_tick
func onTick(id uint32) {
	if c, before := enter(id); c.plugin != nil {
		state.Tick(c.plugin)
		dropLost()
		leave(before)
	}
}

// beforeRequest does nothing, except in builds for tests: see trap.go.
var beforeRequest = func() {}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(id uint32, _ int32, end bool) (a uint32) {
	c, before := enter(id)
	switch c.kind {
	case stream:
		beforeRequest()
		a = uint32(c.stream.RequestHeaders(end))
	case attempt:
		a = uint32(c.attempt.RequestHeaders())
	default: // it would pass uncounted
		host{}.Reply(500, nil, nil)
		a = uint32(filter.Pause)
	}
	leave(before)
	return a
}

//go:wasmexport proxy_on_request_body
func onRequestBody(id uint32, size int32, end bool) (a uint32) {
	c, before := enter(id)
	switch c.kind {
	case stream:
		a = uint32(c.stream.RequestBody(int(size), end))
	case attempt:
		a = uint32(c.attempt.RequestBody())
	}
	leave(before)
	return a
}

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(id uint32, _ int32) (a uint32) {
	c, before := enter(id)
	switch c.kind {
	case stream:
		a = uint32(c.stream.RequestTrailers())
	case attempt:
		a = uint32(c.attempt.RequestBody())
	}
	leave(before)
	return min(a, uint32(filter.Pause)) // trailers have no other way to wait
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(id uint32, _ int32, end bool) (a uint32) {
	c, before := enter(id)
	switch c.kind {
	case stream:
		a = uint32(c.stream.ResponseHeaders(end))
	case attempt:
		a = uint32(c.attempt.ResponseHeaders())
	}
	leave(before)
	return a
}

//go:wasmexport proxy_on_response_body
func onResponseBody(id uint32, size int32, end bool) (a uint32) {
	if c, before := enter(id); c.kind == stream {
		a = uint32(c.stream.ResponseBody(int(size), end))
		leave(before)
	}
	return a
}

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(id uint32, _ int32) (a uint32) {
	if c, before := enter(id); c.kind == stream {
		a = uint32(c.stream.ResponseTrailers())
		leave(before)
	}
	return a
}

// onLog comes once for each stream, when it is over and before Envoy's access log is written. Attempts have none.
//
//go:wasmexport proxy_on_log
func onLog(id uint32) {
	c, before := enter(id)
	c.end()
	leave(before)
}

// onDelete is the last that comes of a context.
//
//go:wasmexport proxy_on_delete
func onDelete(id uint32) {
	c, before := enter(id)
	c.end()
	leave(before)
	if c.id == id && c.kind == plugin {
		dropCalls(id)
	}
	remove(id)
}

// end ends the stream, once.
func (c *context) end() {
	if c.kind == stream {
		c.kind = nothing
		c.stream.Done()
		leavePlace(c.place)
		c.stream, c.place = nil, nil
	}
}

//go:wasmexport proxy_on_http_call_response
func onHttpCallResponse(id, token uint32, _, size, _ int32) {
	_, before := enter(id)
	answered(token, size)
	leave(before)
}
