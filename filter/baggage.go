// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"net/url"
	"strings"
)

// baggage is a member of W3C's baggage, which may come in several headers; "" if it is not there, or there with two values.
func baggage(headers [][2]string, key string) (value string) {
	for _, h := range headers {
		if h[0] != baggageHeader {
			continue
		}
		for member := range strings.SplitSeq(h[1], ",") {
			pair, _, _ := strings.Cut(member, ";") // properties
			k, v, ok := strings.Cut(pair, "=")
			if !ok || strings.TrimSpace(k) != key {
				continue
			}
			v, err := url.PathUnescape(strings.TrimSpace(v))
			if err != nil || value != "" && v != value {
				return ""
			}
			value = v
		}
	}
	return value
}

const baggageHeader = "baggage"
