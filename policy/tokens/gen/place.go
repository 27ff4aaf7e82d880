// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// place finds a pilot for each bucket, so that all keys get slots of their own. The fullest buckets choose first, as long
// as there is much room.
func place(keys []key, slots uint64) (pilots []byte, entries []uint64, err error) {
	buckets := make([][]key, 1<<bucketBits)
	order := make([]int, len(buckets))
	for _, k := range keys {
		b := k.hash >> (64 - bucketBits)
		buckets[b] = append(buckets[b], k)
	}
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(buckets[b]) - len(buckets[a]) })
	pilots, entries = make([]byte, len(buckets)), make([]uint64, slots)
	used := make([]bool, slots)
	for _, b := range order {
		pilot, at := findPilot(buckets[b], used)
		if at == nil {
			return nil, nil, fmt.Errorf("no pilot for a bucket of %d", len(buckets[b]))
		}
		pilots[b] = pilot
		for n, k := range buckets[b] {
			used[at[n]] = true
			entries[at[n]] = k.hash>>printInHash<<printShift | k.ranks
		}
	}
	for s := range entries {
		if !used[s] {
			entries[s] = ranksMask
		}
	}
	return pilots, entries, nil
}

// findPilot gives the first pilot that puts the keys into free slots, all different, and these slots; nil if there is none.
func findPilot(bucket []key, used []bool) (byte, []uint64) {
pilots:
	for p := range uint64(256) {
		at := make([]uint64, 0, len(bucket))
		for _, k := range bucket {
			s := (k.hash * (p*pilotMul + pilotAdd) >> 32) * uint64(len(used)) >> 32
			if used[s] || slices.Contains(at, s) {
				continue pilots
			}
			at = append(at, s)
		}
		return byte(p), at
	}
	return 0, nil
}
