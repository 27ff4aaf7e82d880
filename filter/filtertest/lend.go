// SPDX-License-Identifier: Apache-2.0

package filtertest

import (
	"slices"
	"unsafe"
)

// mostLent is how much the filter lends itself in a callback, as wasm. What is more is its garbage collector's.
const mostLent = 64 << 10

// lend gives bytes that are the filter's until the callback is over: of a body, of the headers of an answer, or of a value of shared
// data.
func (w *Worker) lend(b []byte) []byte {
	if w.lent == nil {
		w.lent = make([]byte, 0, mostLent)
	}
	start := (len(w.lent) + 7) &^ 7
	end := start + len(b)
	if b == nil || end > mostLent {
		return slices.Clone(b)
	}
	w.lent = w.lent[:end]
	copy(w.lent[start:], b)
	return w.lent[start:end:end]
}

func (w *Worker) lendString(s string) string {
	b := w.lend([]byte(s))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// takeBack ends that, after each callback: who uses it then reads nonsense, or writes into what another was lent.
func (w *Worker) takeBack() {
	spoil(w.lent)
	w.lent = w.lent[:0]
	if v, ok := w.vm.(*wasmVM); ok {
		v.takeBack()
	}
}

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}
