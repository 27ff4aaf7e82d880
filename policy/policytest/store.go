// SPDX-License-Identifier: Apache-2.0

// Package policytest has what tests of the packages around policy need, and tools that run without an Envoy: a store with the
// compare-and-swap rules of Envoy's shared data, and a scheduler that runs workers through every order of their accesses to it.
package policytest

import "slices"

// A Store is shared memory with Envoy's rules: the versions of all keys come from one counter, an absent key is created
// whatever the version, a version of 0 overwrites whatever there is, any other must be right
// (proxy-wasm-cpp-host, src/shared_data.cc). It is not safe for concurrent use.
type Store struct {
	values map[string]*value
	cas    uint32

	Gets, Sets, Mismatches int

	// Reuse gives out each value in one of two buffers in turn, so that a benchmark of a single worker sees no allocation of
	// the store's. A value is then overwritten two Gets of its key later.
	Reuse bool

	// Before, if set, is called before each access: it may run other workers, or refuse the access by returning false.
	Before func(op, key string) bool
}

type value struct {
	data []byte
	out  [2][]byte
	turn int
	cas  uint32
}

// NewStore makes an empty store.
func NewStore() *Store { return &Store{values: map[string]*value{}} }

// Get gives a copy of the value, and its version.
func (s *Store) Get(key string) ([]byte, uint32, bool) {
	if s.Before != nil && !s.Before("get", key) {
		return nil, 0, false
	}
	s.Gets++
	v := s.values[key]
	if v == nil {
		return nil, 0, false
	}
	if !s.Reuse {
		return slices.Clone(v.data), v.cas, true
	}
	v.turn ^= 1
	v.out[v.turn] = append(v.out[v.turn][:0], v.data...)
	return v.out[v.turn], v.cas, true
}

// Set writes a value by Envoy's rules.
func (s *Store) Set(key string, data []byte, cas uint32) bool {
	if s.Before != nil && !s.Before("set", key) {
		return false
	}
	s.Sets++
	v := s.values[key]
	if v == nil {
		v = new(value)
		s.values[string([]byte(key))] = v
	} else if cas != 0 && cas != v.cas {
		s.Mismatches++
		return false
	}
	s.cas++
	if s.cas == 0 {
		s.cas = 1
	}
	v.data, v.cas = append(v.data[:0], data...), s.cas
	return true
}

// Len is the number of keys, which only ever grows.
func (s *Store) Len() int { return len(s.values) }

// Bytes is the size of all values.
func (s *Store) Bytes() (n int) {
	for _, v := range s.values {
		n += len(v.data)
	}
	return n
}

// Keys lists the keys in order.
func (s *Store) Keys() []string {
	keys := make([]string, 0, len(s.values))
	for k := range s.values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
