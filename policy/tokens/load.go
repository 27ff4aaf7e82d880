// SPDX-License-Identifier: Apache-2.0

//go:build !(mips || mips64 || ppc64 || s390x)

package tokens

import "unsafe"

// load64 reads 8 bytes, little endian. Written as it is in encoding/binary it would cost the compiler so much that what calls
// it is not inlined any more.
func load64(p unsafe.Pointer) uint64 { return *(*uint64)(p) }
