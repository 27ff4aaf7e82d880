// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

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

// now is the time of the callback that is running; 0 if it has not asked yet.
var now int64

// Now asks for the host's monotonic clock itself: Go's is relative to the start of the VM, so two VMs would not agree. A
// callback asks once: it is over before any other begins.
func (host) Now() int64 {
	const monotonic = 1
	if now == 0 {
		clockTimeGet(monotonic, 1, unsafe.Pointer(&out.ns))
		now = out.ns
	}
	return now
}

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(to unsafe.Pointer, size int32) int32

// Random asks Envoy, which asks BoringSSL. (crypto/rand would, too, with all that it links.)
func (host) Random(to []byte) bool {
	return randomGet(unsafe.Pointer(unsafe.SliceData(to)), int32(len(to))) == 0
}

func (host) Wall() int64 {
	const realtime = 0
	clockTimeGet(realtime, 1, unsafe.Pointer(&out.ns))
	return out.ns
}

//go:wasmimport env proxy_get_shared_data
func getSharedData(key unsafe.Pointer, keySize int32, value, size, cas unsafe.Pointer) uint32

//go:wasmimport env proxy_set_shared_data
func setSharedData(key unsafe.Pointer, keySize int32, value unsafe.Pointer, size int32, cas uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
func getBufferBytes(which, start, most int32, data, size unsafe.Pointer) uint32

func (host) Get(key string) (value []byte, cas uint32, ok bool) {
	at, n := data(key)
	lending = true
	status := getSharedData(at, n, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size), unsafe.Pointer(&out.cas))
	if lending = false; status != 0 {
		return nil, 0, false
	}
	return given(), out.cas, true
}

func (host) Set(key string, value []byte, cas uint32) bool {
	at, n := data(key)
	return setSharedData(at, n, unsafe.Pointer(unsafe.SliceData(value)), int32(len(value)), cas) == 0
}

// buffer reads a body that is buffered, or the chunk that is passing.
func buffer(which int32, from, size int) []byte {
	if size == 0 {
		return nil
	}
	lending = true
	status := getBufferBytes(which, int32(from), int32(size), unsafe.Pointer(&out.data), unsafe.Pointer(&out.size))
	if lending = false; status != 0 {
		return nil
	}
	return given()
}

// Header maps and buffers by their numbers in the ABI.
const (
	requestHeaders          = 0
	responseHeaders         = 2
	httpCallResponseHeaders = 6

	requestBody          = 0
	responseBody         = 1
	httpCallResponseBody = 4
	pluginConfig         = 7
)

// pluginConfiguration is the configuration, in memory that it may keep.
func pluginConfiguration(size int32) []byte {
	if size == 0 || getBufferBytes(pluginConfig, 0, size, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 {
		return nil
	}
	return given()
}

//go:wasmimport env proxy_set_buffer_bytes
func setBufferBytes(which, start, most int32, data unsafe.Pointer, size int32) uint32

// setBuffer replaces all of a body, or of the chunk that is passing.
func setBuffer(which int32, b []byte) {
	setBufferBytes(which, 0, math.MaxInt32, unsafe.Pointer(unsafe.SliceData(b)), int32(len(b)))
}

//go:wasmimport env proxy_get_header_map_pairs
func getHeaderMapPairs(which int32, data unsafe.Pointer, size unsafe.Pointer) uint32

// pairs reads the headers that the host has given, into the same memory each time. Names and values lie where the host has put them.
func pairs(to [][2]string) [][2]string {
	raw := unsafe.String(out.data, out.size)
	number := func(at int) int {
		return int(raw[at]) | int(raw[at+1])<<8 | int(raw[at+2])<<16 | int(raw[at+3])<<24
	}
	n := number(0)
	to = slices.Grow(to[:0], n)[:n]
	text := 4 + 8*n
	for i := range to {
		name, value := number(4+8*i), number(8+8*i)
		to[i] = [2]string{raw[text : text+name], raw[text+name+1 : text+name+1+value]}
		text += name + value + 2
	}
	return to
}

func (host) RequestHeaders(to [][2]string) [][2]string {
	if getHeaderMapPairs(requestHeaders, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size)) != 0 || out.size < 4 {
		return to[:0]
	}
	return pairs(to)
}

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

func (host) RequestBody(from, size int) []byte { return buffer(requestBody, from, size) }

func (host) SetRequestBody(body []byte) { setBuffer(requestBody, body) }

func (host) SetResponseBody(chunk []byte) { setBuffer(responseBody, chunk) }

// answer is where the headers of an answer are read to.
var answer [][2]string

func (host) ResponseHeaders() [][2]string {
	lending = true
	status := getHeaderMapPairs(responseHeaders, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size))
	if lending = false; status != 0 || out.size < 4 {
		return nil
	}
	answer = pairs(answer)
	return answer
}

// header is one header, for who needs no other.
func header(which int32, name string) string {
	n, size := data(name)
	lending = true
	status := getHeaderMapValue(which, n, size, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size))
	if lending = false; status != 0 || out.size == 0 {
		return ""
	}
	return unsafe.String(out.data, out.size)
}

func (host) ResponseHeader(name string) string { return header(responseHeaders, name) }

func (host) SetResponseHeader(name, value string) { setHeader(responseHeaders, name, value) }

func (host) RemoveResponseHeader(name string) { removeHeader(responseHeaders, name) }

func (host) ResponseBody(size int) []byte { return buffer(responseBody, 0, size) }

//go:wasmimport env proxy_set_effective_context
func setEffectiveContext(id uint32) uint32

//go:wasmimport env proxy_continue_stream
func continueStream(which int32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func setTickPeriod(ms uint32) uint32

func (host) Enter(stream uint32) { setEffectiveContext(stream) }

func (host) Resume() {
	const request = 0
	continueStream(request)
}

func (host) SetTick(d time.Duration) { setTickPeriod(uint32(d.Milliseconds())) }

//go:wasmimport env proxy_get_property
func getProperty(path unsafe.Pointer, pathSize int32, data, size unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
func setProperty(path unsafe.Pointer, pathSize int32, value unsafe.Pointer, size int32) uint32

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

//go:wasmimport env proxy_send_local_response
func sendLocalResponse(status uint32, details unsafe.Pointer, detailsSize int32, body unsafe.Pointer, bodySize int32,
	headers unsafe.Pointer, headersSize int32, grpc int32) uint32

func (host) Reply(status int, headers [][2]string, body []byte) {
	const noGRPC = -1
	h := encode(headers)
	sendLocalResponse(uint32(status), nil, 0, unsafe.Pointer(unsafe.SliceData(body)), int32(len(body)),
		unsafe.Pointer(unsafe.SliceData(h)), int32(len(h)), noGRPC)
}

// encode writes headers as the ABI has them: their number, all sizes, all names and values with a zero each.
func encode(headers [][2]string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(headers)))
	for _, h := range headers {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(h[0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(h[1])))
	}
	for _, h := range headers {
		b = append(append(b, h[0]...), 0)
		b = append(append(b, h[1]...), 0)
	}
	return b
}

//go:wasmimport env proxy_define_metric
func defineMetric(kind int32, name unsafe.Pointer, size int32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func incrementMetric(id uint32, by int64) uint32

// Add adds to a counter.
func (host) Add(m *filter.Metric, n int64) {
	const counter = 0
	if m.ID == 0 && defineMetric(counter, unsafe.Pointer(unsafe.StringData(m.Name)), int32(len(m.Name)), unsafe.Pointer(&m.ID)) != 0 {
		return
	}
	incrementMetric(m.ID, n)
}

//go:wasmimport env proxy_log
func proxyLog(level int32, message unsafe.Pointer, size int32) uint32

// logLevels are the ABI's.
var logLevels = [...]int32{filter.Debug: 1, filter.Info: 2, filter.Warn: 3, filter.Error: 4}

func (host) Log(level filter.Level, message string) {
	m, n := data(message)
	proxyLog(logLevels[level], m, n)
}
