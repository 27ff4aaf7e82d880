// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// textsUnder says whether all that the items of a list hold under a key are lists of objects with nothing but a text.
func textsUnder(list, key string) (ok bool) {
	ok = list == "" || list[0] == '['
	jsonwalk.Items(list, func(item string) bool {
		ok = item[0] == '{' && textUnder(item, key)
		return ok
	})
	return ok
}

// textUnder is textsUnder for one item.
func textUnder(item, key string) (ok bool) {
	ok = true
	jsonwalk.Members(item, func(k, v string) bool {
		if k == key || strings.IndexByte(k, '\\') >= 0 {
			ok = k == key && onlyTexts(v)
		}
		return ok
	})
	return ok
}

func onlyTexts(list string) (ok bool) {
	ok = list == "" || list[0] == '['
	jsonwalk.Items(list, func(part string) bool {
		ok = part[0] == '{'
		jsonwalk.Members(part, func(k, v string) bool {
			ok = ok && k == "text" && v[0] == '"'
			return ok
		})
		return ok
	})
	return ok
}
