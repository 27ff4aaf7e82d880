// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

// A Denied is calls that were refused for one reason, or would have been if the limit did not only watch.
type Denied struct {
	Who       string    `json:"who,omitempty"`       // whose limit refused; empty: none did
	Tenant    string    `json:"tenant,omitempty"`    // whose calls they were; empty: not known
	Tier      string    `json:"tier,omitempty"`      // of the limit
	Dimension string    `json:"dimension,omitempty"` // of it
	Limit     int64     `json:"limit,omitempty"`     // as it was when it last refused
	Reason    string    `json:"reason"`
	Decision  string    `json:"decision"` // what became of them instead
	Shadow    bool      `json:"shadow,omitempty"`
	Class     string    `json:"class,omitempty"`
	Recent    int64     `json:"recent"` // calls in the last ten minutes
	Calls     int64     `json:"calls"`  // since none came for ten minutes, or the controller began
	Last      time.Time `json:"last"`
}

// A Waiting is the calls of a class that wait, and those that wait no more.
type Waiting struct {
	Class  string  `json:"class"`
	Now    int64   `json:"now"`
	Recent []int64 `json:"recent"` // that ended in the last ten minutes, by [fleet.WaitBounds]
	Calls  int64   `json:"calls"`  // that ended since the controller began
}

// What is remembered: so many minutes, of so many kinds of denials.
const (
	minutes    = 10
	maxDenied  = 4096
	maxClasses = 100
	shownDeny  = 200
)

// A recent counts by the minute.
type recent struct {
	counts [minutes]int64
	minute int64 // the newest
}

func (r *recent) add(now, n int64) {
	r.pass(now)
	r.counts[r.minute%minutes] += n
}

// pass forgets the minutes that are over.
func (r *recent) pass(now int64) {
	minute := now / int64(time.Minute)
	for r.minute = max(r.minute, minute-minutes); r.minute < minute; {
		r.minute++
		r.counts[r.minute%minutes] = 0
	}
}

func (r *recent) sum(now int64) (n int64) {
	r.pass(now)
	for _, c := range r.counts {
		n += c
	}
	return n
}

// A deniedKey is what is told apart.
type deniedKey struct {
	tier      policy.Tier
	dimension policy.Dimension
	reason    policy.Reason
	verdict   policy.Verdict
	shadow    bool
	key       policy.Key
	tenant    policy.Key
	class     string
}

type denied struct {
	recent
	limit, calls int64
	last         time.Time
	at           int64
}

type waited struct {
	within [len(fleet.WaitBounds)]recent
	now    map[string]waitingNow // by node
	calls  int64
}

type waitingNow struct{ calls, at int64 }

// denied takes in who was refused. What there is no place for is counted without a name.
func (c *core) denied(d *fleet.Denial) {
	k := deniedKey{d.Tier, d.Dimension, d.Reason, d.Verdict, d.Shadow, d.Key, d.Tenant, d.Class}
	if c.denials[k] == nil && len(c.denials) >= maxDenied {
		k.key, k.tenant, k.class = 0, 0, ""
	}
	e := c.denials[k]
	if e == nil {
		if len(c.denials) >= 2*maxDenied {
			return
		}
		e = &denied{}
		c.denials[k] = e
	}
	e.add(c.now, d.Calls)
	e.limit, e.last, e.at = d.Limit, c.wall, c.now
	e.calls += d.Calls
}

// waits takes in who waits.
func (c *core) waits(n *node, w *fleet.Waits) {
	e := c.classes[w.Class]
	if e == nil {
		if len(c.classes) >= maxClasses {
			return
		}
		e = &waited{now: map[string]waitingNow{}}
		c.classes[w.Class] = e
	}
	if e.now[n.id] = (waitingNow{w.Now, c.now}); w.Now == 0 {
		delete(e.now, n.id)
	}
	for i, calls := range w.Within {
		e.within[i].add(c.now, calls)
		e.calls += calls
	}
}

// sweepDenials forgets what nobody has met for as long as is remembered.
func (c *core) sweepDenials() {
	for k, e := range c.denials {
		if c.now-e.at > minutes*int64(time.Minute) {
			delete(c.denials, k)
		}
	}
}

// showDenials gives those that pass, the most frequent first, no more than shownDeny of them.
func (c *core) showDenials(pass func(*deniedKey) bool) []Denied {
	var keys []deniedKey
	for k := range c.denials {
		if pass(&k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b deniedKey) int {
		x, y := c.denials[a], c.denials[b]
		return cmp.Or(cmp.Compare(y.sum(c.now), x.sum(c.now)), cmp.Compare(y.at, x.at), cmp.Compare(a.key, b.key), cmp.Compare(a.reason, b.reason))
	})
	list := []Denied{}
	for _, k := range keys[:min(len(keys), shownDeny)] {
		list = append(list, c.showDenied(&k, c.denials[k]))
	}
	return list
}

// showReasons counts denials by tier, dimension and reason, of all keys.
func (c *core) showReasons() []Denied {
	sums := map[deniedKey]*Denied{}
	for k, e := range c.denials {
		v := c.showDenied(&k, e)
		k.key, k.tenant, k.class = 0, 0, ""
		sum := sums[k]
		if sum == nil {
			sums[k] = &v
			v.Who, v.Tenant, v.Class, v.Limit = "", "", "", 0
			continue
		}
		sum.Recent, sum.Calls = sum.Recent+v.Recent, sum.Calls+v.Calls
		if v.Last.After(sum.Last) {
			sum.Last = v.Last
		}
	}
	list := []Denied{}
	for _, v := range sums {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b Denied) int {
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(a.Tier+a.Dimension+a.Reason, b.Tier+b.Dimension+b.Reason))
	})
	return list
}

func (c *core) showDenied(k *deniedKey, e *denied) Denied {
	v := Denied{
		Tenant: c.nameOf(policy.TierTenant, k.tenant), Reason: k.reason.String(), Decision: k.verdict.String(), Shadow: k.shadow, Class: k.class,
		Recent: e.sum(c.now), Calls: e.calls, Last: e.last, Limit: e.limit,
	}
	if k.key == 0 && e.limit == 0 {
		return v
	}
	v.Tier, v.Who = k.tier.String(), cmp.Or(c.nameOf(k.tier, k.key), k.tier.String()+" of others")
	if e.limit > 0 {
		v.Dimension = k.dimension.String()
	}
	return v
}

// nameOf is what people call a key: as its limits are called, or by its fingerprint.
func (c *core) nameOf(t policy.Tier, key policy.Key) string {
	if key == 0 {
		return ""
	}
	if c.dir != nil {
		if e := c.dir.byKey[keyOf{t, key}]; e != nil {
			return t.String() + " " + e.Name
		}
	}
	for d := range policy.InFlight + 1 { // it has meters, if not of that dimension
		if q := c.taken[place{keyOf{t, key}, d, 0}]; q != nil {
			return q.label
		}
	}
	return t.String() + " " + fingerprint(key)
}

func (c *core) showWaits() []Waiting {
	list := []Waiting{}
	for class, e := range c.classes {
		v := Waiting{Class: class, Calls: e.calls}
		for i := range e.within {
			v.Recent = append(v.Recent, e.within[i].sum(c.now))
		}
		for _, n := range e.now {
			if c.now-n.at < int64(c.params.Lease) {
				v.Now += n.calls
			}
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b Waiting) int { return cmp.Compare(a.Class, b.Class) })
	return list
}
