// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/weirproxy/weir/filter"
)

// host is Envoy.
type host struct{}

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func clockTimeGet(id int32, precision int64, out unsafe.Pointer) int32

// out is where the host writes what a call gives. It is not a variable of the function that calls: what a host call points to is
// allocated, each time. A VM has one thread, and nothing else calls the host before what was written is read.
var out struct {
	data *byte
	size int32
	cas  uint32
	ns   int64
}

// given is what the host has put into memory that it has allocated here, and that nothing else points to.
func given() []byte { return unsafe.Slice(out.data, out.size) }

func data(s string) (unsafe.Pointer, int32) {
	return unsafe.Pointer(unsafe.StringData(s)), int32(len(s))
}

// Now asks for the host's monotonic clock itself: Go's is relative to the start of the VM, so two VMs would not agree.
func (host) Now() int64 {
	const monotonic = 1
	clockTimeGet(monotonic, 1, unsafe.Pointer(&out.ns))
	return out.ns
}

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(to unsafe.Pointer, size int32) int32

// Random asks Envoy, which asks BoringSSL. (crypto/rand would, too, with all that it links.)
func (host) Random(to []byte) bool {
	return randomGet(unsafe.Pointer(unsafe.SliceData(to)), int32(len(to))) == 0
}

func (host) Wall() int64 { return time.Now().UnixNano() }

// The calls that every request makes several times are imported here, without the SDK's layers: each function that is run
// costs a request more for being fetched into the processor's caches than for what it does.

//go:wasmimport env proxy_get_shared_data
func getSharedData(key unsafe.Pointer, keySize int32, value, size, cas unsafe.Pointer) uint32

//go:wasmimport env proxy_set_shared_data
func setSharedData(key unsafe.Pointer, keySize int32, value unsafe.Pointer, size int32, cas uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
func getBufferBytes(which, start, most int32, data, size unsafe.Pointer) uint32

func (host) Get(key string) (value []byte, cas uint32, ok bool) {
	at, n := data(key)
	if getSharedData(at, n, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size), unsafe.Pointer(&out.cas)) != 0 {
		return nil, 0, false
	}
	return given(), out.cas, true
}

func (host) Set(key string, value []byte, cas uint32) bool {
	at, n := data(key)
	return setSharedData(at, n, unsafe.Pointer(unsafe.SliceData(value)), int32(len(value)), cas) == 0
}

// buffer reads a body that is buffered, or the chunk that is passing.
func buffer(which int32, size int) []byte {
	if size == 0 || getBufferBytes(which, 0, int32(size), unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 {
		return nil
	}
	return given()
}

// Header maps and buffers by their numbers in the ABI.
const (
	requestHeaders  = 0
	responseHeaders = 2

	requestBody  = 0
	responseBody = 1
)

//go:wasmimport env proxy_get_header_map_pairs
func getHeaderMapPairs(which int32, data unsafe.Pointer, size unsafe.Pointer) uint32

// headers reads a header map. The SDK's own call makes a string of each name and value; here they lie in the memory that
// the host has filled.
func headers(which int32) [][2]string {
	if getHeaderMapPairs(which, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 || out.size < 4 {
		return nil
	}
	raw := unsafe.String(out.data, out.size)
	number := func(at int) int {
		return int(raw[at]) | int(raw[at+1])<<8 | int(raw[at+2])<<16 | int(raw[at+3])<<24
	}
	n := number(0)
	pairs := make([][2]string, n)
	text := 4 + 8*n
	for i := range pairs {
		name, value := number(4+8*i), number(8+8*i)
		pairs[i] = [2]string{raw[text : text+name], raw[text+name+1 : text+name+1+value]}
		text += name + value + 2
	}
	return pairs
}

func (host) RequestHeaders() [][2]string { return headers(requestHeaders) }

//go:wasmimport env proxy_get_header_map_value
func getHeaderMapValue(which int32, name unsafe.Pointer, nameSize int32, data, size unsafe.Pointer) uint32

//go:wasmimport env proxy_replace_header_map_value
func replaceHeaderMapValue(which int32, name unsafe.Pointer, nameSize int32, value unsafe.Pointer, size int32) uint32

//go:wasmimport env proxy_remove_header_map_value
func removeHeaderMapValue(which int32, name unsafe.Pointer, nameSize int32) uint32

func setHeader(which int32, name, value string) {
	n, size := data(name)
	v, length := data(value)
	replaceHeaderMapValue(which, n, size, v, length)
}

func removeHeader(which int32, name string) {
	n, size := data(name)
	removeHeaderMapValue(which, n, size)
}

func (host) SetRequestHeader(name, value string) { setHeader(requestHeaders, name, value) }

func (host) RemoveRequestHeader(name string) { removeHeader(requestHeaders, name) }

func (host) RequestBody(size int) []byte { return buffer(requestBody, size) }

func (host) SetRequestBody(body []byte) { _ = proxywasm.ReplaceHttpRequestBody(body) }

func (host) SetResponseBody(chunk []byte) { _ = proxywasm.ReplaceHttpResponseBody(chunk) }

func (host) ResponseHeaders() [][2]string { return headers(responseHeaders) }

// ResponseHeader is one header of the answer, for who needs no other.
func (host) ResponseHeader(name string) string {
	n, size := data(name)
	if getHeaderMapValue(responseHeaders, n, size, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 {
		return ""
	}
	return unsafe.String(out.data, out.size)
}

func (host) SetResponseHeader(name, value string) { setHeader(responseHeaders, name, value) }

func (host) RemoveResponseHeader(name string) { removeHeader(responseHeaders, name) }

func (host) ResponseBody(size int) []byte { return buffer(responseBody, size) }

func (host) Enter(stream uint32) { _ = proxywasm.SetEffectiveContext(stream) }

func (host) Resume() { _ = proxywasm.ResumeHttpRequest() }

func (host) SetTick(d time.Duration) {
	_ = proxywasm.SetTickPeriodMilliSeconds(uint32(d.Milliseconds()))
}

//go:wasmimport env proxy_get_property
func getProperty(path unsafe.Pointer, pathSize int32, data, size unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
func setProperty(path unsafe.Pointer, pathSize int32, value unsafe.Pointer, size int32) uint32

// httpCallResponseHeaders and httpCallResponseBody are what Post is answered with, by their numbers in the ABI.
const (
	httpCallResponseHeaders = 6
	httpCallResponseBody    = 4
)

// Post is of the plugin whose callback is running: if that goes before the answer comes, none does.
func (host) Post(cluster, path, contentType string, body []byte, timeout time.Duration, answer func(status int, body []byte)) bool {
	sent := [][2]string{{":method", "POST"}, {":path", path}, {":authority", cluster}, {":scheme", "http"}, {"content-type", contentType}}
	_, err := proxywasm.DispatchHttpCall(cluster, sent, body, nil, uint32(timeout.Milliseconds()), func(_, size, _ int) {
		status := 0
		for _, h := range headers(httpCallResponseHeaders) {
			if h[0] == ":status" {
				status, _ = strconv.Atoi(h[1])
			}
		}
		answer(status, buffer(httpCallResponseBody, size))
	})
	return err == nil
}

func (host) Property(path ...string) string {
	p, n := data(strings.Join(path, "\x00"))
	if getProperty(p, n, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 {
		return ""
	}
	return unsafe.String(out.data, out.size)
}

func (host) SetProperty(name, value string) {
	p, n := data(name)
	v, size := data(value)
	setProperty(p, n, v, size)
}

func (host) Reply(status int, headers [][2]string, body []byte) {
	_ = proxywasm.SendHttpResponse(uint32(status), headers, body, -1)
}

//go:wasmimport env proxy_define_metric
func defineMetric(kind int32, name unsafe.Pointer, size int32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func incrementMetric(id uint32, by int64) uint32

// Add adds to a counter. The SDK would panic where Envoy refuses a metric, with a message that brings all of package fmt.
func (host) Add(m *filter.Metric, n int64) {
	const counter = 0
	if m.ID == 0 && defineMetric(counter, unsafe.Pointer(unsafe.StringData(m.Name)), int32(len(m.Name)), unsafe.Pointer(&m.ID)) != 0 {
		return
	}
	incrementMetric(m.ID, n)
}

func (host) Log(level filter.Level, message string) {
	switch level {
	case filter.Error:
		proxywasm.LogError(message)
	case filter.Warn:
		proxywasm.LogWarn(message)
	case filter.Debug:
		proxywasm.LogDebug(message)
	default:
		proxywasm.LogInfo(message)
	}
}
