// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"unsafe"

	"github.com/weirproxy/weir/policy"
)

// In shared data offers lie as they are in memory: all who read them are of the same build.

// An offerHeader stands before the meters of one offer.
type offerHeader struct {
	layout  uint32
	meters  uint32
	vm      uint64
	key     policy.Key
	owner   policy.Key
	entry   policy.Key
	tier    policy.Tier
	space   policy.Space
	calls   int64
	cost    policy.Cost
	refused bool
}

const (
	offerLayout = 0x77660002 // changes with every change of the structs
	offerName   = "fo"
	maxNews     = 128 << 10
	newsTries   = 16

	headerBytes  = int(unsafe.Sizeof(offerHeader{}))
	offeredBytes = int(unsafe.Sizeof(offered{}))
)

func (o *offer) append(b []byte, vm uint64) []byte {
	s := &o.step
	h := offerHeader{
		layout: offerLayout, meters: uint32(len(o.meters)), vm: vm, tier: s.Tier, key: s.Key, owner: s.Owner, entry: s.Limit.Entry(), space: s.Space,
		calls: o.calls, cost: o.cost, refused: o.refused,
	}
	b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerBytes)...)
	for k := range o.meters {
		b = append(b, unsafe.Slice((*byte)(unsafe.Pointer(&o.meters[k])), offeredBytes)...)
	}
	return b
}

// post puts news where the member finds them; false if there is no room, or others were faster each time.
func (v *VM) post(name string, news []byte) bool {
	return v.update(name, func(old []byte) ([]byte, bool) {
		return append(old, news...), len(old)+len(news) <= maxNews
	})
}

// collect takes all news there are.
func (v *VM) collect(name string) (news []byte) {
	if !v.update(name, func(old []byte) ([]byte, bool) {
		news = old
		return nil, len(old) > 0
	}) {
		return nil // what others were faster with comes with the next tick
	}
	return news
}

// update puts in place of a value what change makes of it, if that says so. false: it did not, or others were faster each time.
// change may be called several times.
func (v *VM) update(name string, change func(old []byte) (is []byte, changed bool)) bool {
	for range newsTries {
		old, cas, ok := v.host.Get(name)
		if !ok {
			cas = policy.CreateCAS
		}
		is, changed := change(old)
		if !changed {
			return false
		}
		if v.host.Set(name, is, cas) {
			return true
		}
	}
	return false
}

// nextOffer reads the first offer of news.
func nextOffer(news []byte) (h *offerHeader, meters []offered, rest []byte) {
	if len(news) < headerBytes {
		return nil, nil, nil
	}
	h = (*offerHeader)(unsafe.Pointer(unsafe.SliceData(news)))
	size := headerBytes + int(h.meters)*offeredBytes
	if h.layout != offerLayout || len(news) < size {
		return nil, nil, nil
	}
	if h.meters > 0 {
		meters = unsafe.Slice((*offered)(unsafe.Pointer(&news[headerBytes])), h.meters)
	}
	return h, meters, news[size:]
}
