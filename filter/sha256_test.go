// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"bytes"
	"crypto/hmac"
	stdlib "crypto/sha256"
	"testing"
)

// It gives what the standard library gives, for keys and messages of every length around the blocks.
func TestSHA256(t *testing.T) {
	for n := range 300 {
		message := bytes.Repeat([]byte{byte(n), 0x5a, byte(n >> 3)}, n)[:n]
		if sha256(message) != stdlib.Sum256(message) {
			t.Fatalf("%d bytes: another sum", n)
		}
		m := hmac.New(stdlib.New, message)
		m.Write([]byte("message"))
		if got := hmacSHA256(message, []byte("message")); !hmac.Equal(got[:], m.Sum(nil)) {
			t.Fatalf("a key of %d bytes: another code", n)
		}
	}
}

func FuzzHMAC(f *testing.F) {
	f.Add([]byte("key"), []byte("The quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, key, message []byte) {
		m := hmac.New(stdlib.New, key)
		m.Write(message)
		if got := hmacSHA256(key, message); !hmac.Equal(got[:], m.Sum(nil)) {
			t.Fatalf("%x %x: %x", key, message, got)
		}
	})
}
