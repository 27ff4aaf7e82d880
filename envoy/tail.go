// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"slices"
	"strings"
	"sync"
)

// A tail keeps the end of what Envoy writes, for errors: why it did not start stands only there.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	return len(b), nil
}

// lines gives what was kept, to be put after an error.
func (t *tail) lines() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.buf))
	if s == "" {
		return ""
	}
	return "\n" + s
}
