// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"unsafe"
)

// A Learner is one worker's access to what all workers learn from answers: by how much the count of the input is off, and
// how long answers are. It is not safe for concurrent use: each worker has its own. What it learns makes reservations
// better, never a limit larger; what gets lost is learned again.
type Learner struct {
	store Store
	kept  [256]kept
}

// kept is what a worker remembers of a sketch for keepFor, so that a request costs no access to shared data.
type kept struct {
	key   Key
	until int64
	input Calibration
	long  int64 // output: see LongOutput
}

const (
	keepFor      = int64(1e9)
	learnSlots   = 4096
	learnTries   = 4
	strangerIdle = int64(600e9) // a slot that has learned nothing for so long may be taken over
)

// NewLearner makes a learner on the store of the ledgers.
func NewLearner(store Store) *Learner { return &Learner{store: store} }

// learnedName is the name of slot i: no other record's name has this length.
func learnedName(slot uint64) (n name) {
	n.buf[0], n.n = 'L', 3
	binary.LittleEndian.PutUint16(n.buf[1:], uint16(slot))
	return n
}

// learn adds a number to the sketch of a key. Where the slots of the key are others', or others are faster, it is left out.
func (l *Learner) learn(now int64, key Key, bucket int, weight uint16) {
	if k, fresh := l.keep(now, key); fresh {
		k.until = now // the worker that learned something knows it at once
	}
	for range learnTries {
		slot, value, cas := l.find(now, key)
		s := sketchOf(value)
		if s == nil {
			return
		}
		s.add(bucket, weight)
		s.at = max(s.at, now)
		if n := learnedName(slot); l.store.Set(n.str(), value, cas) {
			return
		}
	}
}

// find gives the sketch of a key to write to: the one there is, or a new one in a slot that is free. nil: there is none.
func (l *Learner) find(now int64, key Key) (slot uint64, value []byte, cas uint32) {
	for _, at := range waysOf(key) {
		n := learnedName(at)
		v, c, ok := l.store.Get(n.str())
		s := sketchOf(v)
		if ok && s != nil && s.key == uint64(key) {
			return at, v, c
		}
		if value == nil && (!ok || s == nil || now-s.at > strangerIdle) {
			slot, value, cas = at, newSketch(key), CreateCAS
			if ok {
				cas = c
			}
		}
	}
	return slot, value, cas
}

// read gives the sketch of a key; nil if nothing was learned.
func (l *Learner) read(key Key) *sketch {
	for _, at := range waysOf(key) {
		n := learnedName(at)
		v, _, _ := l.store.Get(n.str())
		if s := sketchOf(v); s != nil && s.key == uint64(key) {
			return s
		}
	}
	return nil
}

// waysOf gives the two slots in which a key may be.
func waysOf(key Key) [2]uint64 {
	h := mix(uint64(key))
	return [2]uint64{h % learnSlots, h >> 32 % learnSlots}
}

func newSketch(key Key) []byte {
	value := make([]byte, sketchSize)
	s := (*sketch)(unsafe.Pointer(unsafe.SliceData(value)))
	s.layout, s.key = sketchLayout, uint64(key)
	return value
}

// keep gives the place where a key is remembered, and whether what is there is still good.
func (l *Learner) keep(now int64, key Key) (k *kept, fresh bool) {
	k = &l.kept[mix(uint64(key))>>20%uint64(len(l.kept))]
	if k.key == key && now < k.until && k.until-now <= keepFor {
		return k, true
	}
	*k = kept{key: key, until: now + keepFor}
	return k, false
}
