// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strings"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/store"
)

// A keeper keeps what a controller of the fleet must not forget, for one term: what it would save after that is refused.
type keeper struct {
	ctx   context.Context
	store store.Store
	term  func() store.Term
	fresh bool // the first term that finds nothing in the store is the first there is
}

var _ fleet.Store = keeper{}

// fleetRecords is what the keys of its records begin with.
const fleetRecords = "fleet/"

// begun is the record that says that there has been a controller.
const begun = fleetRecords + "begun"

// NextEpoch gives the token of the term.
func (k keeper) NextEpoch() (uint64, bool, error) {
	t := k.term()
	if !k.fresh {
		return t.Token, t.First, nil
	}
	kept, err := k.store.Load(k.ctx, fleetRecords)
	if err != nil || len(kept) > 0 {
		return t.Token, t.First, err
	}
	return t.Token, true, k.store.Save(k.ctx, t, store.Record{Key: begun, Value: []byte{1}})
}

// Load gives all records. One that is not there was not saved: a store that has lost some would have lost a day's quotas, too.
func (k keeper) Load() ([]fleet.Record, bool, error) {
	kept, err := k.store.Load(k.ctx, fleetRecords)
	records := make([]fleet.Record, len(kept))
	for i, r := range kept {
		records[i] = fleet.Record{Key: strings.TrimPrefix(r.Key, fleetRecords), Value: r.Value}
	}
	return records, true, err
}

// Save keeps records, if the term holds at the store.
func (k keeper) Save(records []fleet.Record) error {
	kept := make([]store.Record, len(records))
	for i, r := range records {
		kept[i] = store.Record{Key: fleetRecords + r.Key, Value: r.Value}
	}
	return k.store.Save(k.ctx, k.term(), kept...)
}
