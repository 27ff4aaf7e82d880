// SPDX-License-Identifier: Apache-2.0

//go:build mips || mips64 || ppc64 || s390x

package tokens

import (
	"encoding/binary"
	"unsafe"
)

// load64 reads 8 bytes, little endian.
func load64(p unsafe.Pointer) uint64 { return binary.LittleEndian.Uint64((*[8]byte)(p)[:]) }
