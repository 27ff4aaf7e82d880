// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"
)

// The limits of a provider that tells none are found: nothing is refused for long, most of what there is gets used, and a later
// controller knows what was found.
func TestProbe(t *testing.T) {
	w := newMesh(t, 3, 2, `apiVersion: weir/v1
trust: [all]
who: {tenant: [header x-tenant], user: [header x-user]}
providers:
  openai: {upstream: "http://127.0.0.1:1", models: {"*": {probe: true}}}
`)
	const limit = 100_000 // tokens a minute, which nobody has told
	refused := 0
	w.refuses = func(c *meshCall) bool {
		used := int64(0)
		for i := len(w.calls) - 1; i >= 0 && w.calls[i].came > w.now-int64(3*time.Minute); i-- {
			if o := w.calls[i]; o.over && o.ends > w.now-int64(time.Minute) {
				used += o.input + o.output
			}
		}
		if used > limit {
			refused++
			return true
		}
		return false
	}
	for _, e := range w.envoys {
		e.rate = 15
	}
	w.run(40 * time.Second)
	q := w.quotaOf(t, "tpm")
	if q.Limit != 20_000 || q.Learned != nil {
		t.Errorf("at first %+v", q)
	}
	w.run(20 * time.Minute)
	q = w.quotaOf(t, "tpm")
	// While a call runs it counts as all that it may use, which is about twice what it will: so the limit under which the provider
	// is used up is higher than its own.
	if q.Learned == nil || !q.Learned.Found || q.Learned.Limit < limit || q.Learned.Limit > 3*limit {
		t.Fatalf("after 20 minutes %+v, learned %+v", q, q.Learned)
	}
	if refused == 0 || refused > len(w.calls)/30 {
		t.Errorf("%d of %d calls were refused by the provider", refused, len(w.calls))
	}
	found := q.Learned.Limit
	w.start()
	w.run(30 * time.Second)
	if q = w.quotaOf(t, "tpm"); q.Learned == nil || q.Learned.Limit != found || q.Limit > found {
		t.Errorf("a later controller has %+v, learned %+v", q, q.Learned)
	}
}

func (w *meshWorld) quotaOf(t *testing.T, dimension string) Quota {
	for _, q := range w.core.status(0).Quotas {
		if q.Tier == "provider" && q.Dimension == dimension {
			return q
		}
	}
	t.Fatal("no such quota")
	return Quota{}
}
