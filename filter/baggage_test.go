// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"testing"

	"github.com/weirproxy/weir/filter/filtertest"
)

// A tree may be named in W3C's baggage, which may come in several headers, with blanks, properties and escapes; with two values it
// names none. It does not leave, and counts only for callers that are trusted.
func TestBaggage(t *testing.T) {
	const policy = `{"apiVersion":"weir/v1","trust":["10.0.0.0/8"],"providers":{"openai":{"upstream":"http://openai.test"}},
		"who":{"tree":["baggage weir.tree"]},"limits":{"tree":{"default":{"calls":"1"}}}}`
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		call := func(address string, headers ...string) *filtertest.Exchange {
			r := request("/openai/v1/models", "a", "")
			r.Method, r.Body = "GET", nil
			for _, h := range headers {
				r.Headers = append(r.Headers, [2]string{"baggage", h})
			}
			r.Properties = map[string]string{"source.address": address}
			return p.Worker(0).Open(r)
		}
		const friend, stranger = "10.0.0.1:1", "11.0.0.1:1"
		if x := call(friend, "user=u,  weir.tree = a%20b ;ttl=1"); !x.Sent || x.Upstream("baggage") != "" {
			t.Errorf("%+v %v", x.Reply, x.Headers)
		}
		for _, row := range []struct {
			address string
			headers []string
			sent    bool
		}{
			{friend, []string{"x=y", "weir.tree=a%20b,weir.tree=a%20b"}, false}, {friend, []string{"weir.tree=c"}, true}, {friend, []string{"weir.tree=c"}, false},
			{friend, []string{"weir.tree=c,weir.tree=d"}, true}, {friend, []string{"weir.tree=c,weir.tree=d"}, true}, {friend, []string{"weir.tree=%zz"}, true},
			{friend, []string{"weir.tree=%zz"}, true}, {stranger, []string{"weir.tree=c"}, true}, {friend, []string{"weir.trees=c"}, true}, {friend, nil, true},
		} {
			if x := call(row.address, row.headers...); x.Sent != row.sent {
				t.Errorf("%+v: %+v", row, x.Reply)
			}
		}
	})
}
