// SPDX-License-Identifier: Apache-2.0

package feedback

// A Limit is what is known of one limit of a provider from its headers.
type Limit struct {
	Dimension Dimension
	Scope     string
	Limit     int64 // units, believed
	External  int64 // units that others use of it
	At        int64 // ns: when it was last told

	moved int64 // ns: when Limit last changed
}

// Effective is what is left of the limit for us.
func (l *Limit) Effective() int64 { return max(l.Limit-l.External, 0) }

// A Learner keeps what the headers of one provider's model tell. Answers overtake each other, so the one with the freshest
// Date wins; answers from a cache are those of another call and tell nothing.
type Learner struct {
	date   int64 // unix ns of the freshest answer
	limits []Limit
}

// A Finding is something new in what is known of a limit, for the log and for `weir learn`.
type Finding struct {
	Dimension Dimension
	Scope     string
	From, To  int64 // units; From is 0 for a limit that was not known
	External  bool  // it is the use of others that changed, not the limit
}

// A limit moves by at most a factor of two in moveEvery: what a provider really changes arrives a little later, what one
// garbled header says does no harm. maxLimits bounds what one provider may tell.
const (
	moveEvery = 10 * second
	maxLimits = maxObservations
)

// Take takes an answer and appends what is new to found. own is how many units of a dimension we used in its window
// ourselves, -1 if that is not known: what is gone beyond it, others have used.
func (l *Learner) Take(found []Finding, now int64, r Reply, own func(Dimension) int64) []Finding {
	date := r.Date()
	if r.Cached() || date != 0 && date < l.date {
		return found
	}
	l.date = max(l.date, date)
	var seen [maxObservations]Observation
	for _, o := range Observe(seen[:0], r) {
		if o.Limit > 0 {
			o.Dimension.Window = o.impliedWindow()
			found = l.take(found, now, &o, own)
		}
	}
	return found
}

func (l *Learner) take(found []Finding, now int64, o *Observation, own func(Dimension) int64) []Finding {
	k := l.at(o)
	if k == nil {
		return found
	}
	if from := k.Limit; k.move(now, o.Limit) {
		found = append(found, Finding{k.Dimension, k.Scope, from, k.Limit, false})
	}
	k.At = now
	if o.Remaining < 0 || own == nil {
		return found
	}
	if used := own(k.Dimension); used >= 0 {
		from := k.External
		k.External = min(max(o.Limit-o.Remaining-used, 0), k.Limit)
		if worthTelling(from, k.External, k.Limit) {
			found = append(found, Finding{k.Dimension, k.Scope, from, k.External, true})
		}
	}
	return found
}

// move brings the limit nearer to what was told, and says whether it changed.
func (k *Limit) move(now, to int64) bool {
	if k.Limit == 0 {
		k.Limit, k.moved = to, now
		return true
	}
	if k.Limit == to || now-k.moved < moveEvery {
		return false
	}
	k.moved = now
	k.Limit = min(max(to, (k.Limit+1)/2), k.Limit*2)
	return true
}

// worthTelling says whether a use changed by more than a twentieth of the limit.
func worthTelling(from, to, limit int64) bool {
	return max(from-to, to-from) > limit/20
}

// at finds what is known of an observation's limit. A window that this answer does not tell is the one that another told.
func (l *Learner) at(o *Observation) *Limit {
	for i := range l.limits {
		k := &l.limits[i]
		same := k.Dimension.Quantity == o.Dimension.Quantity && k.Scope == o.Scope
		if same && (k.Dimension.Window == o.Dimension.Window || k.Dimension.Window == 0 || o.Dimension.Window == 0) {
			k.Dimension.Window = max(k.Dimension.Window, o.Dimension.Window)
			return k
		}
	}
	if len(l.limits) >= maxLimits {
		return nil
	}
	l.limits = append(l.limits, Limit{Dimension: o.Dimension, Scope: clone(o.Scope)})
	return &l.limits[len(l.limits)-1]
}

// Limits are all that are known. They are valid until the next Take.
func (l *Learner) Limits() []Limit { return l.limits }
