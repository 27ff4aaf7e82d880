// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/weirproxy/weir/policy"
)

// Bolt is a store in one file, which one process has at a time. What it has answered is on the disk.
type Bolt struct {
	db    *bbolt.DB
	clock func() int64 // wall clock, µs: a process that starts again goes on by it
	lead  leaders
	done  chan struct{}
	swept chan struct{}
}

var _ Store = (*Bolt)(nil)

// Parts of the file.
var (
	boltRecords = []byte("records") // by bucket
	boltCalls   = []byte("calls")   // by id
	boltExpiry  = []byte("expiry")  // of calls: time and id
	boltState   = []byte("state")   // what leaders keep
	boltMeta    = []byte("meta")
	boltToken   = []byte("token")
)

// OpenBolt opens the file, and makes it if there is none.
func OpenBolt(path string) (*Bolt, error) {
	return openBolt(path, func() int64 { return time.Now().UnixMicro() })
}

func openBolt(path string, clock func() int64) (*Bolt, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("store: %s is in use by another process: end that, or share a Redis with --store redis://…", path)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	db.MaxBatchDelay = time.Millisecond // calls that come together share one write to the disk
	s := &Bolt{db: db, clock: clock, done: make(chan struct{}), swept: make(chan struct{})}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{boltRecords, boltCalls, boltExpiry, boltState, boltMeta} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	go s.sweep()
	return s, nil
}

// String gives the path.
func (s *Bolt) String() string { return "bolt:" + s.db.Path() }

// Close closes the file, once nobody uses it.
func (s *Bolt) Close() error {
	close(s.done)
	<-s.swept
	return s.db.Close()
}

// Take takes a call's cost.
func (s *Bolt) Take(ctx context.Context, t *Take) (a Answer, err error) {
	if err := errors.Join(t.check(), ctx.Err()); err != nil {
		return a, err
	}
	try := func(tx *bbolt.Tx) error { a, err = s.take(tx, t); return err }
	// A refusal changes nothing, so it needs no write.
	if err := s.db.View(try); err != nil || a.Verdict != Admitted {
		return a, failed("take", err)
	}
	return a, failed("take", s.db.Batch(try))
}

// failed makes the file's own errors those of a store.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return unavailable(op, err)
}

func (s *Bolt) take(tx *bbolt.Tx, t *Take) (a Answer, err error) {
	now := s.clock()
	var known *call
	if err := get(tx, boltCalls, t.ID, &known); err != nil {
		return a, err
	}
	switch {
	case known != nil && known.Items == nil && known.Settled:
		return Answer{Verdict: Settled}, nil
	case known != nil:
		return Answer{Verdict: Admitted}, nil
	}
	records := make([]*record, len(t.Items))
	for i := range t.Items {
		if err := get(tx, boltRecords, t.Items[i].Bucket, &records[i]); err != nil {
			return a, err
		}
		if records[i] == nil {
			records[i] = new(record)
		}
		records[i].fit(now, &t.Items[i])
	}
	if a = t.judge(now, records); a.Verdict != Admitted || !tx.Writable() {
		return a, nil
	}
	c := t.hold(now, records)
	for i, r := range records {
		if err := put(tx, boltRecords, t.Items[i].Bucket, r); err != nil {
			return a, err
		}
	}
	return a, s.note(tx, now, t.ID, c)
}

// note keeps a call until it is forgotten, and forgets some others.
func (s *Bolt) note(tx *bbolt.Tx, now int64, id string, c *call) error {
	until := max(c.Until, now) + remember.Microseconds()
	expiry, calls := tx.Bucket(boltExpiry), tx.Bucket(boltCalls)
	if err := expiry.Put(append(binary.BigEndian.AppendUint64(nil, uint64(until)), id...), nil); err != nil {
		return err
	}
	cursor := expiry.Cursor()
	for range 8 {
		k, _ := cursor.First()
		if k == nil || int64(binary.BigEndian.Uint64(k)) > now {
			break
		}
		if err := errors.Join(calls.Delete(k[8:]), cursor.Delete()); err != nil {
			return err
		}
	}
	return put(tx, boltCalls, id, c)
}

// Settle makes a take count as what it cost.
func (s *Bolt) Settle(ctx context.Context, id string, actual policy.Cost) (settled bool, err error) {
	if err := errors.Join(checkNames(id), checkCost(actual), ctx.Err()); err != nil {
		return false, err
	}
	err = s.db.Batch(func(tx *bbolt.Tx) error { settled, err = s.settle(tx, id, actual); return err })
	return settled, failed("settle", err)
}

func (s *Bolt) settle(tx *bbolt.Tx, id string, actual policy.Cost) (bool, error) {
	now := s.clock()
	var c *call
	if err := get(tx, boltCalls, id, &c); err != nil {
		return false, err
	}
	if c == nil {
		return false, s.note(tx, now, id, &call{Settled: true})
	}
	if c.Settled || c.Until <= now {
		return false, nil
	}
	for i := range c.Items {
		held := &c.Items[i]
		var r *record
		if err := get(tx, boltRecords, held.Bucket, &r); err != nil {
			return false, err
		}
		if r == nil {
			continue
		}
		r.settle(now, id, held, actual)
		if err := put(tx, boltRecords, held.Bucket, r); err != nil {
			return false, err
		}
	}
	c.Settled = true
	return true, put(tx, boltCalls, id, c)
}

func get[T any](tx *bbolt.Tx, bucket []byte, key string, to **T) error {
	if b := tx.Bucket(bucket).Get([]byte(key)); b != nil {
		return json.Unmarshal(b, to)
	}
	return nil
}

func put(tx *bbolt.Tx, bucket []byte, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.Bucket(bucket).Put([]byte(key), b)
}
