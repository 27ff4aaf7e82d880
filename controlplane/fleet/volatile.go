// SPDX-License-Identifier: Apache-2.0

package fleet

import "time"

// A Volatile is a store that ends with the process.
type Volatile struct {
	first bool
	last  uint64
}

// NewVolatile makes a store. fresh says that no Envoy can hold anything of an earlier controller, for all of them begin with this
// one; otherwise the epoch is the time of day, and the controller learns for a while what Envoys hold. What they have used of a
// day's limit it does not know.
func NewVolatile(fresh bool) *Volatile { return &Volatile{first: fresh} }

// NextEpoch implements Store.
func (v *Volatile) NextEpoch() (uint64, bool, error) {
	first := v.first
	v.first, v.last = false, max(uint64(time.Now().UnixMicro()), v.last+1)
	return v.last, first, nil
}

// Load implements Store.
func (v *Volatile) Load() ([]Record, bool, error) { return nil, false, nil }

// Save implements Store.
func (v *Volatile) Save([]Record) error { return nil }
