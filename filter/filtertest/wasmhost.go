// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// Statuses and codes of the proxy-wasm ABI 0.2.0 that the filter meets.
const (
	statusOK          = 0
	statusNotFound    = 1
	statusCasMismatch = 8

	mapRequestHeaders  = 0
	mapResponseHeaders = 2
	mapPostHeaders     = 6

	bufferRequestBody  = 0
	bufferResponseBody = 1
	bufferPostBody     = 4
	bufferPluginConfig = 7
)

// A guest is the memory of the VM that makes a host call.
type guest struct {
	m api.Module
	w *Worker
}

func (g guest) bytes(ptr, size uint32) []byte {
	b, ok := g.m.Memory().Read(ptr, size)
	if !ok {
		panic("host call with an address outside of memory")
	}
	return bytes.Clone(b)
}

func (g guest) string(ptr, size uint32) string { return string(g.bytes(ptr, size)) }

func (g guest) put32(ptr, v uint32) { g.m.Memory().WriteUint32Le(ptr, v) }

// lend is give, and the memory is the filter's for the callback only.
func (g guest) lend(b []byte, ptr, size uint32) uint32 {
	status := g.give(b, ptr, size)
	at, _ := g.m.Memory().ReadUint32Le(ptr)
	v := g.w.vm.(*wasmVM)
	v.lent = append(v.lent, [2]uint32{at, uint32(len(b))})
	return status
}

// give puts bytes into memory that the guest allocates, and where they are into ptr and size.
func (g guest) give(b []byte, ptr, size uint32) uint32 {
	r, err := g.m.ExportedFunction("proxy_on_memory_allocate").Call(context.Background(), uint64(max(len(b), 1)))
	if err != nil {
		panic(err)
	}
	g.m.Memory().Write(uint32(r[0]), b)
	g.put32(ptr, uint32(r[0]))
	g.put32(size, uint32(len(b)))
	return statusOK
}

// encodePairs writes a header map as the ABI wants it: the count, all sizes, all strings with a zero each.
func encodePairs(pairs [][2]string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(pairs)))
	for _, p := range pairs {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[1])))
	}
	for _, p := range pairs {
		b = append(append(b, p[0]...), 0)
		b = append(append(b, p[1]...), 0)
	}
	return b
}

func decodePairs(b []byte) (pairs [][2]string) {
	if len(b) < 4 {
		return nil
	}
	n := binary.LittleEndian.Uint32(b)
	sizes, rest := b[4:4+8*n], b[4+8*n:]
	take := func(size uint32) string {
		s := string(rest[:size])
		rest = rest[size+1:]
		return s
	}
	for i := range n {
		name := take(binary.LittleEndian.Uint32(sizes[8*i:]))
		pairs = append(pairs, [2]string{name, take(binary.LittleEndian.Uint32(sizes[8*i+4:]))})
	}
	return pairs
}

// defineHost exports the host calls that the filter imports.
func (m *Module) defineHost(ctx context.Context) error {
	b := m.runtime.NewHostModuleBuilder("env")
	def := func(name string, f any) { b.NewFunctionBuilder().WithFunc(f).Export(name) }
	def("proxy_log", func(_ context.Context, mod api.Module, _, ptr, size uint32) uint32 {
		g := m.guest(mod)
		g.w.process.Logs = append(g.w.process.Logs, g.string(ptr, size))
		return statusOK
	})
	def("proxy_set_tick_period_milliseconds", func(context.Context, api.Module, uint32) uint32 { return statusOK })
	def("proxy_set_effective_context", func(_ context.Context, mod api.Module, id uint32) uint32 {
		m.guest(mod).w.enter(id)
		return statusOK
	})
	def("proxy_continue_stream", func(_ context.Context, mod api.Module, _ uint32) uint32 {
		m.guest(mod).w.current.pass(false)
		return statusOK
	})
	def("proxy_get_shared_data", m.getSharedData)
	def("proxy_set_shared_data", m.setSharedData)
	def("proxy_get_header_map_pairs", m.headerPairs)
	def("proxy_get_header_map_value", m.header)
	def("proxy_replace_header_map_value", m.replaceHeader)
	def("proxy_remove_header_map_value", m.removeHeader)
	def("proxy_get_buffer_bytes", m.bufferBytes)
	def("proxy_set_buffer_bytes", m.setBuffer)
	def("proxy_http_call", m.httpCall)
	def("proxy_get_property", m.property)
	def("proxy_set_property", m.setProperty)
	def("proxy_define_metric", m.defineMetric)
	def("proxy_increment_metric", m.incrementMetric)
	def("proxy_send_local_response", m.reply)
	_, err := b.Instantiate(ctx)
	return err
}

func (m *Module) guest(mod api.Module) guest { return guest{mod, m.workers[mod.Name()]} }
