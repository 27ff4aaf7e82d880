// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"net/url"
	"strings"

	"github.com/weirproxy/weir/policy"
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

// usesBaggage says whether baggage names somebody. It does not leave then, as no header does that names a tier.
func usesBaggage(w *policy.WhoSpec) bool {
	for _, sources := range [][]policy.Source{w.Environment, w.Tenant, w.User, w.Tree, w.Tool, w.Class} {
		for _, s := range sources {
			if s.Kind == policy.FromBaggage {
				return true
			}
		}
	}
	return false
}
