// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// A Key names the bucket of one tenant, user, tree or tool: a keyed hash of the tier and the nested names. Nobody who does
// not know the policy's secret can find two names with the same key.
type Key uint64

// MaxName is the longest name of a tier in bytes; see [Hasher.Shorten].
const MaxName = 128

// A Hasher makes keys. The zero value hashes with a known secret.
type Hasher struct{ k0, k1 uint64 }

// NewHasher makes a hasher from 16 bytes of secret.
func NewHasher(secret [16]byte) Hasher {
	return Hasher{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// Key hashes the names, widest first, so that "a", "b/c" and "a/b", "c" differ. It is never 0.
func (h Hasher) Key(t Tier, names ...string) Key {
	var buf [1 + 3*(1+MaxName)]byte
	b := append(buf[:0], byte(t))
	for _, n := range names {
		b = append(b, byte(len(n)))
		b = append(b, n...)
	}
	return Key(max(h.sum(b), 1))
}

// Shorten gives the name, or for one longer than MaxName its beginning and a hash of all of it.
func (h Hasher) Shorten(name string) string {
	if len(name) <= MaxName {
		return name
	}
	hash := strconv.FormatUint(h.sum([]byte(name)), 16)
	return name[:MaxName-17] + "~" + hash
}

// sum is SipHash-2-4 (Aumasson and Bernstein, 2012). It is on every request's path several times, so its state is in local
// variables and each round is inlined.
func (h Hasher) sum(b []byte) uint64 {
	v0, v1, v2, v3 := h.k0^0x736f6d6570736575, h.k1^0x646f72616e646f6d, h.k0^0x6c7967656e657261, h.k1^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}

// mix spreads a key for the choice of a slot (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
