// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy/fleet"
)

// A document is looked at once, however often it is brought, by one worker, which says what is wrong with it.
func TestDocumentsAreTakenOnce(t *testing.T) {
	both(t, 2, `{"apiVersion":"weir/v1","fleet":{"shares":true},"providers":{"openai":{"upstream":"http://openai.test","models":{"*":{"rpm":"60"}}}}}`, func(t *testing.T, p *filtertest.Process) {
		good := (&fleet.ToNode{}).Encode()
		for _, step := range []struct {
			document []byte
			bad      int // so far
		}{{good, 0}, {[]byte("nonsense"), 1}, {[]byte("nonsense"), 1}, {good, 1}, {[]byte("nonsense"), 2}, {nil, 3}} {
			p.TakeShares(step.document)
			p.Sleep(100 * time.Millisecond)
			if n := strings.Count(strings.Join(p.Logs, "\n"), "bad shares"); n != step.bad {
				t.Fatalf("after %q: %d logs, want %d: %q", step.document, n, step.bad, p.Logs)
			}
		}
	})
}
