// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"strings"
	"testing"
	"unsafe"
)

func TestNoAllocations(t *testing.T) {
	text := strings.Repeat("Counting tokens, 中文 и русский, xqzptlw ", 50)
	var s Set
	for name, count := range map[string]func(){
		"text":    func() { s.Count(O200k, text) },
		"bytes":   func() { s.CountBytes(Cl100k, []byte("ab")) },
		"invalid": func() { s.Count(Claude, "caf\xe9 \xff") },
		"plain":   func() { s.CountJSON(O200k, text) },
		"escaped": func() { s.CountJSON(Cl100k, `"\u4e2d\n\ud83d`+"\xff") },
	} {
		if n := testing.AllocsPerRun(20, count); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestMemory holds the figures of the documentation.
func TestMemory(t *testing.T) {
	if n := unsafe.Sizeof(Counter{}); n > 68<<10 {
		t.Errorf("a Counter takes %d bytes", n)
	}
}

func TestLargeBuffersAreGivenUp(t *testing.T) {
	c := New(O200k)
	small, large := `\n`+strings.Repeat("a\xff", 1000), `\n`+strings.Repeat("a\xff", scratchMax)
	c.CountJSON(small)
	if n := cap(c.decoded); n == 0 || n > 2*len(small) {
		t.Errorf("%d bytes are kept for a text of %d", n, len(small))
	}
	if cap(c.repaired) == 0 {
		t.Error("the buffer for invalid text is not kept")
	}
	c.CountJSON(large)
	if c.decoded != nil || c.repaired != nil {
		t.Errorf("buffers of %d and %d bytes are kept", cap(c.decoded), cap(c.repaired))
	}
}
