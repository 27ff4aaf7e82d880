// SPDX-License-Identifier: Apache-2.0

package store

import "go.etcd.io/bbolt"

// reset empties the file.
func (s *Bolt) reset() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{boltRecords, boltCalls, boltExpiry, boltState} {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Bolt) count(bucket []byte) (n int) {
	_ = s.db.View(func(tx *bbolt.Tx) error { n = tx.Bucket(bucket).Stats().KeyN; return nil })
	return n
}
