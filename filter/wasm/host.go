// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
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

func (host) Property(path string) string {
	p, n := data(path)
	lending = true
	status := getProperty(p, n, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size))
	if lending = false; status != 0 || out.size == 0 {
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
