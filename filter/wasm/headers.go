// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package main

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// Header maps by their numbers in the ABI.
const (
	requestHeaders          = 0
	responseHeaders         = 2
	httpCallResponseHeaders = 6
)

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
	holding = true
	status := getHeaderMapPairs(requestHeaders, unsafe.Pointer(&out.data), unsafe.Pointer(&out.size))
	current.place, held, holding = held, nil, false
	if status != 0 || out.size < 4 {
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
