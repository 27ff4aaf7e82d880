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
	var buf [1 + 4*(1+MaxName)]byte
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

// sum is SipHash-2-4 (Aumasson and Bernstein, 2012).
func (h Hasher) sum(b []byte) uint64 {
	s := sip{h.k0 ^ 0x736f6d6570736575, h.k1 ^ 0x646f72616e646f6d, h.k0 ^ 0x6c7967656e657261, h.k1 ^ 0x7465646279746573}
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		s.word(binary.LittleEndian.Uint64(b))
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	s.word(last)
	s[2] ^= 0xff
	for range 4 {
		s.round()
	}
	return s[0] ^ s[1] ^ s[2] ^ s[3]
}

type sip [4]uint64

func (s *sip) word(m uint64) {
	s[3] ^= m
	s.round()
	s.round()
	s[0] ^= m
}

func (s *sip) round() {
	s[0] += s[1]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[0] = bits.RotateLeft64(s[0], 32)
	s[2] += s[3]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] += s[3]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[2] += s[1]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}

// mix spreads a key for the choice of a slot (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
