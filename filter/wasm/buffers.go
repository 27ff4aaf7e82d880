// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
	"math"
	"unsafe"
)

// Buffers by their numbers in the ABI.
const (
	requestBody          = 0
	responseBody         = 1
	httpCallResponseBody = 4
	pluginConfig         = 7
)

//go:wasmimport env proxy_get_buffer_bytes
func getBufferBytes(which, start, most int32, data, size unsafe.Pointer) uint32

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

func (host) RequestBody(from, size int) []byte { return buffer(requestBody, from, size) }

func (host) SetRequestBody(body []byte) { setBuffer(requestBody, body) }

func (host) ResponseBody(size int) []byte { return buffer(responseBody, 0, size) }

func (host) SetResponseBody(chunk []byte) { setBuffer(responseBody, chunk) }
