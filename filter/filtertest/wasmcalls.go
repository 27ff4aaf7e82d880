// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero/api"
)

func (m *Module) getSharedData(_ context.Context, mod api.Module, key, keySize, value, size, cas uint32) uint32 {
	g := m.guest(mod)
	b, version, ok := g.w.process.Store.Get(g.string(key, keySize))
	if !ok {
		return statusNotFound
	}
	g.put32(cas, version)
	return g.lend(b, value, size)
}

func (m *Module) setSharedData(_ context.Context, mod api.Module, key, keySize, value, size, cas uint32) uint32 {
	g := m.guest(mod)
	if !g.w.process.Store.Set(g.string(key, keySize), g.bytes(value, size), cas) {
		return statusCasMismatch
	}
	return statusOK
}

func (m *Module) headerPairs(_ context.Context, mod api.Module, which, ptr, size uint32) uint32 {
	g := m.guest(mod)
	if which == mapRequestHeaders {
		return g.give(encodePairs(g.w.current.Headers), ptr, size)
	}
	return g.lend(encodePairs(g.w.current.answer), ptr, size)
}

// header is one of the answer, or the status that a post was answered with: the filter asks for no other alone.
func (m *Module) header(_ context.Context, mod api.Module, which, name, nameSize, ptr, size uint32) uint32 {
	g := m.guest(mod)
	if which == mapPostHeaders {
		return g.lend([]byte(strconv.Itoa(g.w.answered.status)), ptr, size)
	}
	if n := g.string(name, nameSize); has(g.w.current.answer, n) {
		return g.lend([]byte(valueOf(g.w.current.answer, n)), ptr, size)
	}
	return statusNotFound
}

func (m *Module) replaceHeader(_ context.Context, mod api.Module, which, name, nameSize, value, valueSize uint32) uint32 {
	g := m.guest(mod)
	switch which {
	case mapRequestHeaders:
		g.w.current.setRequest(g.string(name, nameSize), g.string(value, valueSize))
	case mapResponseHeaders:
		g.w.current.setResponse(g.string(name, nameSize), g.string(value, valueSize))
	}
	return statusOK
}

func (m *Module) removeHeader(_ context.Context, mod api.Module, which, name, nameSize uint32) uint32 {
	g := m.guest(mod)
	switch which {
	case mapRequestHeaders:
		g.w.current.removeRequest(g.string(name, nameSize))
	case mapResponseHeaders:
		g.w.current.removeResponse(g.string(name, nameSize))
	}
	return statusOK
}

func (m *Module) bufferBytes(_ context.Context, mod api.Module, which, start, most, ptr, size uint32) uint32 {
	g := m.guest(mod)
	var b []byte
	switch which {
	case bufferRequestBody:
		b = g.w.current.readBody(0, math.MaxInt32)
	case bufferResponseBody:
		b = g.w.current.chunk
	case bufferPostBody:
		b = g.w.answered.body
	case bufferPluginConfig:
		b = g.w.vm.(*wasmVM).config
	}
	b = b[min(int(start), len(b)):]
	b = b[:min(int(most), len(b))]
	switch {
	case len(b) == 0:
		return statusNotFound
	case which == bufferPluginConfig:
		return g.give(b, ptr, size)
	}
	return g.lend(b, ptr, size)
}

// setBuffer replaces a buffer as a whole, which is all that the filter does.
func (m *Module) setBuffer(_ context.Context, mod api.Module, which, start, most, ptr, size uint32) uint32 {
	g := m.guest(mod)
	b := []byte(g.string(ptr, size))
	switch which {
	case bufferRequestBody:
		g.w.current.buffer = b
	case bufferResponseBody:
		g.w.current.chunk = b
	}
	return statusOK
}

// httpCall is answered at the next tick, in the plugin of the context that makes it.
func (m *Module) httpCall(_ context.Context, mod api.Module, _, _, headers, headersSize, body, bodySize, _, _, timeout, id uint32) uint32 {
	g := m.guest(mod)
	v := g.w.vm.(*wasmVM)
	v.posts++
	token, plugin, path := v.posts, v.roots[v.active], ""
	for _, h := range decodePairs(g.bytes(headers, headersSize)) {
		if h[0] == ":path" {
			path = h[1]
		}
	}
	g.put32(id, uint32(token))
	g.w.post(path, g.bytes(body, bodySize), time.Duration(timeout)*time.Millisecond, func(status int, b []byte) {
		g.w.answered.status, g.w.answered.body = status, b
		v.call("proxy_on_http_call_response", plugin, token, 1, uint64(len(b)), 0)
	})
	return statusOK
}

func (m *Module) property(_ context.Context, mod api.Module, path, pathSize, ptr, size uint32) uint32 {
	g := m.guest(mod)
	v := g.w.property(g.string(path, pathSize))
	if v == "" {
		return statusNotFound
	}
	return g.give([]byte(v), ptr, size)
}

func (m *Module) setProperty(_ context.Context, mod api.Module, path, pathSize, ptr, size uint32) uint32 {
	g := m.guest(mod)
	g.w.current.setProperty(g.string(path, pathSize), g.string(ptr, size))
	return statusOK
}

// Metric ids are indexes into this list, one for each VM in Envoy, one for all here.
var metricNames = []string{""}

func (m *Module) defineMetric(_ context.Context, mod api.Module, _, name, size, id uint32) uint32 {
	g := m.guest(mod)
	metricNames = append(metricNames, g.string(name, size))
	g.put32(id, uint32(len(metricNames)-1))
	return statusOK
}

func (m *Module) incrementMetric(_ context.Context, mod api.Module, id uint32, by int64) uint32 {
	m.guest(mod).w.process.Metrics[metricNames[id]] += int(by)
	return statusOK
}

func (m *Module) reply(_ context.Context, mod api.Module, status, _, _, body, bodySize, headers, headersSize uint32, _ int32) uint32 {
	g := m.guest(mod)
	g.w.current.reply(int(status), decodePairs(g.bytes(headers, headersSize)), g.bytes(body, bodySize))
	return statusOK
}
