// SPDX-License-Identifier: Apache-2.0

// Standin is a plugin that stands in for weir's filter in tests of what is around it. It shows which configuration a request
// met, and does on demand what the filter does: holds a request until its body is there, crashes, refuses a configuration.
package main

import (
	"bytes"
	"fmt"
	"hash/fnv"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

type plugin struct {
	types.DefaultPluginContext
	config  string
	counter proxywasm.MetricCounter
	attempt bool
}

// OnPluginStart refuses a configuration that has the word refuse-me in it.
func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	b, err := proxywasm.GetPluginConfiguration()
	if err != nil || bytes.Contains(b, []byte("refuse-me")) {
		proxywasm.LogCriticalf("standin: configuration refused: %v", err)
		return types.OnPluginStartStatusFailed
	}
	p.attempt = bytes.Contains(b, []byte(`"role":"attempt"`))
	h := fnv.New32a()
	h.Write(b)
	p.config = fmt.Sprintf("%08x", h.Sum32())
	p.counter = proxywasm.DefineCounterMetric("weir_requests_total.decision.admit.reason.ok.tier.tenant.dimension.tpm")
	return types.OnPluginStartStatusOK
}

// NewHttpContext begins a stream. Within a cluster, where weir's filter counts attempts, it does nothing.
func (p *plugin) NewHttpContext(uint32) types.HttpContext {
	if p.attempt {
		return &types.DefaultHttpContext{}
	}
	return &stream{plugin: p}
}

type stream struct {
	types.DefaultHttpContext
	plugin *plugin
	source string
	hold   bool
}

func (s *stream) OnHttpRequestHeaders(_ int, end bool) types.Action {
	s.plugin.counter.Increment(1)
	if b, err := proxywasm.GetProperty([]string{"source", "address"}); err == nil {
		s.source = string(b)
	}
	switch v, _ := proxywasm.GetHttpRequestHeader("x-standin"); v {
	case "panic":
		panic("standin: told to")
	case "hold":
		s.hold = !end
	}
	if s.hold {
		return types.ActionPause
	}
	return types.ActionContinue
}

func (s *stream) OnHttpRequestBody(_ int, end bool) types.Action {
	if s.hold && !end {
		return types.ActionPause
	}
	return types.ActionContinue
}

func (s *stream) OnHttpResponseHeaders(int, bool) types.Action {
	_ = proxywasm.AddHttpResponseHeader("x-standin-config", s.plugin.config)
	_ = proxywasm.AddHttpResponseHeader("x-standin-source", s.source)
	return types.ActionContinue
}
