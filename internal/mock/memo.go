// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"strings"
	"sync"
)

// maxMemo bounds a memo, whose keys callers choose.
const maxMemo = 10_000

// memo remembers the values of a pure function of strings.
type memo struct {
	f  func(string) string
	mu sync.RWMutex
	m  map[string]string
}

func newMemo(f func(string) string) *memo { return &memo{f: f, m: map[string]string{}} }

func (m *memo) get(k string) string {
	m.mu.RLock()
	v, ok := m.m[k]
	m.mu.RUnlock()
	if ok {
		return v
	}
	v = m.f(k)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.m) < maxMemo {
		m.m[strings.Clone(k)] = v
	}
	return v
}
