// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

// Command wasm is the filter as Envoy loads it: package filter bound to the proxy-wasm SDK. Build it with
// GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
package main

import (
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
	"github.com/weirproxy/weir/filter"
	"github.com/weirproxy/weir/policy/fleet"
)

func main() {}

func init() { proxywasm.SetVMContext(&vmContext{}) }

// state is made at the first plugin start: during initialisation Envoy allows no host calls.
var state *filter.VM

type vmContext struct{ types.DefaultVMContext }

func (*vmContext) NewPluginContext(id uint32) types.PluginContext { return &pluginContext{id: id} }

type pluginContext struct {
	types.DefaultPluginContext
	id     uint32
	plugin *filter.Plugin
}

func (p *pluginContext) OnPluginStart(int) types.OnPluginStartStatus {
	if state == nil {
		state = filter.NewVM(host{})
	}
	config, err := proxywasm.GetPluginConfiguration()
	if err == nil && fleet.IsToNode(config) {
		if err = state.TakeShares(config); err != nil {
			proxywasm.LogError("weir: bad shares: " + err.Error())
			return types.OnPluginStartStatusFailed
		}
		return types.OnPluginStartStatusOK
	}
	if err == nil {
		p.plugin, err = state.Configure(p.id, config)
	}
	if err != nil {
		proxywasm.LogError("weir: bad policy: " + err.Error())
		return types.OnPluginStartStatusFailed
	}
	if p.plugin.Attempts() {
		return types.OnPluginStartStatusOK
	}
	if err := proxywasm.SetTickPeriodMilliSeconds(uint32(filter.TickEvery.Milliseconds())); err != nil {
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

func (p *pluginContext) OnTick() { state.Tick(p.plugin) }

func (p *pluginContext) NewHttpContext(id uint32) types.HttpContext {
	if p.plugin.Attempts() {
		return &attemptContext{attempt: p.plugin.NewAttempt(id)}
	}
	return &httpContext{stream: p.plugin.NewStream(id)}
}

type httpContext struct {
	types.DefaultHttpContext
	stream *filter.Stream
}

// beforeRequest does nothing, except in builds for tests: see trap.go.
var beforeRequest = func() {}

func action(a filter.Action) types.Action { return types.Action(a) }

func (c *httpContext) OnHttpRequestHeaders(_ int, end bool) types.Action {
	beforeRequest()
	return action(c.stream.RequestHeaders(end))
}

func (c *httpContext) OnHttpRequestBody(size int, end bool) types.Action {
	return action(c.stream.RequestBody(size, end))
}

func (c *httpContext) OnHttpRequestTrailers(int) types.Action {
	return action(c.stream.RequestTrailers())
}

func (c *httpContext) OnHttpResponseHeaders(_ int, end bool) types.Action {
	return action(c.stream.ResponseHeaders(end))
}

func (c *httpContext) OnHttpResponseBody(size int, end bool) types.Action {
	return action(c.stream.ResponseBody(size, end))
}

func (c *httpContext) OnHttpResponseTrailers(int) types.Action {
	return action(c.stream.ResponseTrailers())
}

func (c *httpContext) OnHttpStreamDone() { c.stream.Done() }

// An attemptContext is the filter in a cluster.
type attemptContext struct {
	types.DefaultHttpContext
	attempt *filter.Attempt
}

func (c *attemptContext) OnHttpRequestHeaders(int, bool) types.Action {
	return action(c.attempt.RequestHeaders())
}

func (c *attemptContext) OnHttpRequestBody(int, bool) types.Action {
	return action(c.attempt.RequestBody())
}

func (c *attemptContext) OnHttpRequestTrailers(int) types.Action {
	return min(action(c.attempt.RequestBody()), types.ActionPause)
}

func (c *attemptContext) OnHttpResponseHeaders(int, bool) types.Action {
	return action(c.attempt.ResponseHeaders())
}
