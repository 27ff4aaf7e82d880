// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/binary"
	"time"
)

const stockRecord = "stock/"

// keepStock makes sure that the store never says that less was given than was. It is told a little more, so that it need not be
// told each time.
func (c *core) keepStock(q *quota) {
	if given := q.shared.Limit - q.stock.Left(); given > q.gone {
		q.gone = min(given+q.shared.Limit/stockStep, max(given, q.shared.Limit))
		c.keep(stockRecord+q.key, q.gone, c.wall.Add(time.Duration(q.ends-c.now)).Unix())
		q.kept = true
	}
}

// stockStep is into how many steps a stock is cut that a crash loses one of.
const stockStep = 100

// keep keeps a number until a time of the wall clock; 0: for ever.
func (c *core) keep(key string, v, until int64) {
	c.dirty[key] = binary.AppendVarint(binary.AppendVarint(nil, v), until)
}

func decode(b []byte) (v, until int64, ok bool) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, 0, false
	}
	until, m := binary.Varint(b[n:])
	return v, until, m > 0
}

func over(b []byte, wall time.Time) bool {
	_, until, ok := decode(b)
	return ok && until != 0 && until < wall.Unix()
}

// load gives what was kept, or else another number: absent if there is no record, or one that is over, and broken if it cannot be
// read.
func (c *core) load(key string, absent, broken int64) (v int64, kept bool) {
	b, ok := c.records[key]
	if !ok || over(b, c.wall) {
		return absent, false
	}
	if v, _, ok = decode(b); !ok {
		return broken, true
	}
	return v, true
}

// retryStore is how soon a store that failed is tried again.
const retryStore = int64(100 * time.Millisecond)

// save tells the store what it has to know before anything is sent.
func (c *core) save() error {
	if len(c.dirty) == 0 || c.now < c.retry {
		return c.storeErr
	}
	var records []Record
	for k, v := range c.dirty {
		records = append(records, Record{k, v})
	}
	if c.storeErr = c.store.Save(records); c.storeErr != nil {
		c.retry = c.now + retryStore
		return c.storeErr
	}
	for k, v := range c.dirty {
		if v == nil {
			delete(c.records, k)
		} else {
			c.records[k] = v
		}
	}
	clear(c.dirty)
	return nil
}
