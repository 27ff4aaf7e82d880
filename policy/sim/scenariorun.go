// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/policytest"
)

// A scenarioRun is one run of a scenario.
type scenarioRun struct {
	*Scenario
	clock   Clock
	store   *policytest.Store
	ledger  *policy.Ledger
	vm      uint64
	life    int // of Envoy: a call of an earlier one settles nothing
	policy  *policy.Policy
	history []*admitted
	refused []*ask // each refusal's line
	plots   []*plot
	renews  bool
	err     error
}

// An admitted call counts as cost from at on.
type admitted struct {
	at   int64
	ask  *ask
	cost policy.Cost
}

// start is the time at which a scenario begins, so that no bucket is at the beginning of time.
const start = int64(time.Hour)

// Run runs the scenario. It gives the same report each time: nothing in it hangs on chance.
func (s *Scenario) Run(o Options) (*Report, error) {
	c := *s
	c.asks = make([]*ask, len(s.asks))
	c.wants = append([]want(nil), s.wants...)
	for i, a := range s.asks {
		fresh := *a
		c.asks[i] = &fresh
		for k := range c.wants {
			if c.wants[k].ask == a {
				c.wants[k].ask = &fresh
			}
		}
	}
	r := &scenarioRun{Scenario: &c}
	r.clock.Run(start)
	r.begin()
	r.apply(s.spec)
	r.schedule()
	for k := int64(1); k <= 100 && r.err == nil; k++ {
		r.clock.Run(start + int64(s.ends)*k/100)
		o.progress(int(k), 100)
	}
	if r.err != nil {
		return nil, r.err
	}
	r.clock.Drain() // those that come back
	report := r.report()
	report.Seed = o.Seed
	return report, nil
}

// begin starts an Envoy that knows nothing.
func (r *scenarioRun) begin() {
	r.store = policytest.NewStore()
	r.life++
	r.worker()
}

// worker starts a worker.
func (r *scenarioRun) worker() {
	r.vm++
	r.ledger = policy.NewLedger(r.store, r.vm)
}

func (r *scenarioRun) apply(s *policy.Spec) {
	p, err := policy.Compile(s)
	if err != nil {
		r.err = err // the parser has compiled it: a fault of ours
		return
	}
	p.Since = r.clock.Now()
	r.policy = p
	r.watch()
}

// schedule puts all that will happen on the clock. What happens at one time does so in the order of the lines.
func (r *scenarioRun) schedule() {
	type planned struct {
		line int
		plan func()
	}
	var all []planned
	for _, t := range r.turns {
		all = append(all, planned{t.line, func() { r.clock.At(start+int64(t.at), func() { r.happen(t) }) }})
	}
	for _, a := range r.asks {
		all = append(all, planned{a.line, func() { r.scheduleAsk(a) }})
	}
	slices.SortStableFunc(all, func(a, b planned) int { return cmp.Compare(a.line, b.line) })
	for _, p := range all {
		p.plan()
	}
	r.clock.After(0, r.sample)
}

// goesOn says whether something is still to come. Who comes back later than the last line puts off the end.
func (r *scenarioRun) goesOn() bool { return r.clock.Now() < start+int64(r.ends) }

func (r *scenarioRun) scheduleAsk(a *ask) {
	for i := range a.n {
		r.clock.At(start+int64(a.from)+int64(i)*int64(a.every), func() {
			for range a.times {
				a.asked++
				r.try(a, maxTries)
			}
		})
	}
}

func (r *scenarioRun) happen(t turn) {
	switch t.what {
	case change:
		r.apply(t.spec)
	case restart:
		r.begin()
	case crash:
		r.worker()
	}
}

// path gives the buckets of a request, and what it reserves, as the filter does.
func (r *scenarioRun) path(a *ask) (path policy.Path, cost policy.Cost) {
	model := a.model
	if model == "" {
		model = r.model
	}
	m, _ := r.policy.Providers[0].Models.Lookup(model)
	r.policy.Path(&path, m, &a.caller)
	return path, policy.Cost{Requests: 1, Input: a.input, Output: r.policy.OutputBound(&path, m, a.input, a.output)}
}

// maxTries bounds how often a refused request comes back.
const maxTries = 100

// try asks for one request. A refused one that retries comes back exactly when it was told to.
func (r *scenarioRun) try(a *ask, tries int) {
	path, cost := r.path(a)
	res := new(policy.Reservation)
	d := r.ledger.Reserve(r.clock.Now(), &path, cost, res)
	if d.Verdict == policy.Admit {
		r.admit(a, cost, res)
		return
	}
	if a.first.Verdict == policy.Admit {
		a.first = d
	}
	if a.retry && tries > 0 && d.Refusal.Reason != policy.RequestTooLarge && r.put(d.Refusal.Wait+a.takes) {
		r.clock.After(d.Refusal.Wait, func() { r.try(a, tries-1) })
		return
	}
	a.refused++
	r.refused = append(r.refused, a)
}

// put puts off the end of the run to a time from now on; false if that is too long.
func (r *scenarioRun) put(off time.Duration) bool {
	at := time.Duration(r.clock.Now()-start) + off
	if off > maxLength || at > 2*maxLength {
		return false
	}
	r.ends = max(r.ends, at)
	return true
}

func (r *scenarioRun) admit(a *ask, cost policy.Cost, res *policy.Reservation) {
	a.admitted++
	call := &admitted{r.clock.Now(), a, cost}
	r.history = append(r.history, call)
	r.renew()
	life, ledger := r.life, r.ledger
	r.clock.After(a.takes, func() {
		out := policy.Outcome{Ending: a.ending, Input: a.input, Output: cost.Output, InputEstimated: a.input, OutputSeen: cost.Output}
		if a.used >= 0 {
			out.Output, out.OutputSeen = a.used, a.used
		}
		call.cost, _ = out.Charge(cost, r.policy.Keep)
		if life == r.life && ledger == r.ledger { // else nobody is left who could settle it
			ledger.Settle(r.clock.Now(), res, call.cost)
		}
	})
}

// renew says for the worker that its calls are still there, while there are some.
func (r *scenarioRun) renew() {
	if r.renews {
		return
	}
	r.renews = true
	r.clock.Every(time.Duration(policy.RenewEvery), func() bool {
		r.ledger.Renew(r.clock.Now())
		r.renews = r.ledger.InFlight() > 0
		return r.renews
	})
}
