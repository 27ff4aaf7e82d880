// SPDX-License-Identifier: Apache-2.0

package policy

// A Store is memory that several workers share: Envoy's shared data, or a stand-in for it. Values change by
// compare-and-swap only. A store must not keep the key string, nor the value that it is given.
type Store interface {
	// Get gives a copy of the value that the caller may change, and its version; false if there is none.
	Get(key string) (value []byte, cas uint32, ok bool)
	// Set writes value if the version of the key is still cas; false otherwise. With CreateCAS it writes if there is none.
	Set(key string, value []byte, cas uint32) bool
}

// CreateCAS is the version that no key has: Envoy takes any version for a key that is absent, refuses a wrong one for a
// key that is there, and takes 0 for "whatever there is", which must never be used (RATIONALE.md, "Why a bogus version?").
const CreateCAS = 0xFFFFFFFE
