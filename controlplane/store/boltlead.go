// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// leaders are the terms that hold. They need not be in the file: whoever has it open is alone, and what led before is dead.
type leaders struct {
	mu    sync.Mutex
	terms map[string]Term
}

// Lead makes who the leader, or renews that.
func (s *Bolt) Lead(ctx context.Context, name, who string, lease time.Duration) (Term, error) {
	if err := errors.Join(checkNames(name, who), ctx.Err()); err != nil {
		return Term{}, err
	}
	s.lead.mu.Lock()
	defer s.lead.mu.Unlock()
	now := time.Now()
	t, held := s.lead.terms[name]
	held = held && now.Before(t.Until)
	switch {
	case held && t.Who != who:
		return Term{}, &HeldError{name, t.Who, t.Until.Sub(now)}
	case !held:
		token, first, err := s.nextToken()
		if err != nil {
			return Term{}, failed("lead", err)
		}
		t = Term{Name: name, Who: who, Token: token, First: first}
	}
	t.Until = now.Add(lease)
	if s.lead.terms == nil {
		s.lead.terms = map[string]Term{}
	}
	s.lead.terms[name] = t
	return t, nil
}

// nextToken counts up, and goes by the clock too, so that a file that was put back from a copy does not give a token again.
func (s *Bolt) nextToken() (token uint64, first bool, err error) {
	err = s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(boltMeta)
		b := meta.Get(boltToken)
		token, first = uint64(max(s.clock(), 0)), b == nil
		if len(b) == 8 {
			token = max(token, binary.BigEndian.Uint64(b)+1)
		}
		return meta.Put(boltToken, binary.BigEndian.AppendUint64(nil, token))
	})
	return token, first, err
}

// Resign ends a term.
func (s *Bolt) Resign(_ context.Context, t Term) error {
	s.lead.mu.Lock()
	defer s.lead.mu.Unlock()
	if s.lead.terms[t.Name].Token == t.Token {
		delete(s.lead.terms, t.Name)
	}
	return nil
}

// Save writes records, if the term holds.
func (s *Bolt) Save(ctx context.Context, t Term, records ...Record) error {
	if err := errors.Join(checkRecords(records), ctx.Err()); err != nil {
		return err
	}
	s.lead.mu.Lock()
	defer s.lead.mu.Unlock() // until it is written, so that nobody else begins to lead meanwhile
	if now := s.lead.terms[t.Name]; now.Token != t.Token || now.Who != t.Who || !now.Holds() {
		return ErrFenced
	}
	return failed("save", s.db.Update(func(tx *bbolt.Tx) error {
		state := tx.Bucket(boltState)
		for _, r := range records {
			var err error
			if r.Value == nil {
				err = state.Delete([]byte(r.Key))
			} else {
				err = state.Put([]byte(r.Key), r.Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func checkRecords(records []Record) error {
	for _, r := range records {
		if err := checkNames(r.Key); err != nil {
			return err
		}
	}
	return nil
}

// Load gives records.
func (s *Bolt) Load(ctx context.Context, prefix string) (records []Record, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(boltState).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
			records = append(records, Record{string(k), append([]byte{}, v...)})
		}
		return nil
	})
	return records, failed("load", err)
}

// sweepEvery is how often buckets that nobody uses are looked for, and sweepMost how many are looked at then.
const (
	sweepEvery = time.Minute
	sweepMost  = 10_000
)

// sweep takes out buckets that are as good as new.
func (s *Bolt) sweep() {
	defer close(s.swept)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for next := []byte(nil); ; {
		select {
		case <-s.done:
			return
		case <-tick.C:
			next = s.sweepFrom(next)
		}
	}
}

// sweepFrom looks at some records, and says where to go on.
func (s *Bolt) sweepFrom(next []byte) []byte {
	_ = s.db.Update(func(tx *bbolt.Tx) error { // what fails now is done in a minute
		c := tx.Bucket(boltRecords).Cursor()
		k, _ := c.Seek(next)
		next = nil
		for range sweepMost {
			if k == nil {
				return nil
			}
			var r *record
			if get(tx, boltRecords, string(k), &r) == nil && r.idle(s.clock()) {
				if err := c.Delete(); err != nil {
					return err
				}
				k, _ = c.Seek(k)
				continue
			}
			k, _ = c.Next()
		}
		next = append([]byte{}, k...)
		return nil
	})
	return next
}

// idle says whether a bucket is as good as new.
func (r *record) idle(now int64) bool {
	for i := range r.Meters {
		if s := &r.Meters[i]; max(s.At, s.Until)+4*s.Window > now {
			return false
		}
	}
	for _, o := range r.Open {
		if o.Until > now {
			return false
		}
	}
	return true
}
