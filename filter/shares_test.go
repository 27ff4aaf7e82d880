// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
	"github.com/weirproxy/weir/policy/fleet"
)

// Each worker looks at a document once, however often it is brought, and says what is wrong with it.
func TestDocumentsAreTakenOnce(t *testing.T) {
	both(t, 2, askPolicy, func(t *testing.T, p *filtertest.Process) {
		good := (&fleet.ToNode{}).Encode()
		for _, step := range []struct {
			document []byte
			bad      int // so far
		}{{good, 0}, {[]byte("nonsense"), 2}, {[]byte("nonsense"), 2}, {good, 2}, {[]byte("nonsense"), 4}, {nil, 6}} {
			p.TakeShares(step.document)
			p.Sleep(100 * time.Millisecond)
			if n := strings.Count(strings.Join(p.Logs, "\n"), "bad shares"); n != step.bad {
				t.Fatalf("after %q: %d logs, want %d: %q", step.document, n, step.bad, p.Logs)
			}
		}
	})
}
