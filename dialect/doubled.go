// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// A keyStack finds objects in which a key stands twice. Parsers take the first, the last, or none; who writes such a body wants
// one to be counted and another to be read.
type keyStack struct {
	keys []uint64 // hashes of the keys of all objects that are open
	open []openObject
}

type openObject struct {
	first int             // where its keys begin
	many  map[uint64]bool // its keys, if they are many
}

// fewKeys is up to how many keys of an object are compared with each other; more are looked up.
const fewKeys = 32

// doubled says whether any object in a piece of JSON has a key twice.
func (k *keyStack) doubled(json string) bool {
	clear(k.open)
	k.keys, k.open = k.keys[:0], append(k.open[:0], openObject{})
	for i := 0; i < len(json); {
		switch json[i] {
		case '{':
			k.open = append(k.open, openObject{first: len(k.keys)})
		case '}':
			if n := len(k.open) - 1; n > 0 {
				k.keys, k.open = k.keys[:k.open[n].first], k.open[:n]
			}
		case '"':
			end := jsonwalk.SkipString(json, i)
			if after := jsonwalk.SkipSpace(json, end); after < len(json) && json[after] == ':' && k.add(json[i+1:max(end-1, i+1)]) {
				return true
			}
			i = end
			continue
		}
		i++
	}
	return false
}

// add takes a key of the innermost object, and says whether it is there already.
func (k *keyStack) add(key string) (twice bool) {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(folded(jsonwalk.Unescape(key))) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	o := &k.open[len(k.open)-1]
	own := k.keys[o.first:]
	k.keys = append(k.keys, h)
	if len(own) < fewKeys {
		return slices.Contains(own, h)
	}
	if o.many == nil {
		o.many = make(map[uint64]bool, 2*fewKeys)
		for _, other := range own {
			o.many[other] = true
		}
	}
	twice = o.many[h]
	o.many[h] = true
	return twice
}
