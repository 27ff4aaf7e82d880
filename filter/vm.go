// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/brief"
	"github.com/weirproxy/weir/policy/tokens"
)

// A VM is what all configurations in one worker's memory share.
type VM struct {
	host      Host
	ledger    *policy.Ledger
	reader    dialect.Reader
	memberOf  func(path string) string // of the body that it has read
	id        uint64                   // random: no other worker has it, nor had this one in an earlier life
	room      room
	learner   *policy.Learner
	ample     uint     // calls for which an upper bound was reserved
	unsaid    [16]uint // calls of models that are counted whatever it costs, since an answer did not say what was used
	metrics   metrics
	emergency emergency
	free      []*Stream
	waiters   map[uint64]*waiter // by the number of their entry
	lastID    uint64
	turning   *Stream   // whose callback a turn belongs to; nil in a tick
	late      []late    // answers that are to be given in the next
	effective uint32    // the stream that host calls are about, in a tick
	plugins   []*Plugin // those in which somebody waits
	ticked    int64     // when: the last tick
	renewed   int64     // when: the leases
	told      int64     // when: the counters
	fields    fields    // of the last log line: its memory is used again
	watch     watcher   // of tools without an Envoy

	offers    map[bucketKey]*offer // of buckets that a fleet shares
	member    *member              // nil: another worker is it
	ratesLaid uint32               // number of the rates' last setting
	tryMember int64                // when this one tries to be
	eager     int64                // until then ticks come soon
	epochs    map[string]uint32    // of providers' rates, by quota
	rates     uint64               // counts their changes
	models    map[policy.Key]bool  // that something is learned of

	headcounts headcounts // of what the control plane is told
	counted    int64      // when
	heard      int64      // when the member's work was last done where nothing is shared

	centrals centrals

	pools    map[policy.Key]*pool
	gates    uint64 // changes to all pools that this worker knows of
	attempts bool   // this VM counts Envoy's attempts
	tickets  tickets
	ticket   [8]byte // the last one, as the host is told
}

// NewVM makes the state of one VM.
func NewVM(h Host) *VM {
	v := &VM{
		host:    h,
		id:      rand.Uint64() | 1,
		learner: policy.NewLearner(h),
		metrics: metrics{denied: map[decisionKey]*Metric{}, queued: map[waitOf]*Metric{}},
		waiters: map[uint64]*waiter{},
		offers:  map[bucketKey]*offer{},
		models:  map[policy.Key]bool{},
		pools:   map[policy.Key]*pool{},
	}
	v.tickets.last = v.id
	v.centrals.takes = map[*take]struct{}{}
	v.ledger, v.room.vm, v.memberOf = policy.NewLedger(h, v.id), v, v.reader.Member
	return v
}

// TickEvery is how often Envoy must call [VM.Tick]; tellEvery is how often the host is told what was counted.
const (
	TickEvery = time.Duration(policy.FlushEvery)
	tellEvery = int64(time.Second)
)

// Tick renews what this worker holds in shared data, has the turns of those that wait, and tells the host what it has counted.
// p is the configuration whose timer it was.
func (v *VM) Tick(p *Plugin) {
	defer v.guard("tick")
	now := v.host.Now()
	v.ticked = now
	v.ledger.Flush(now)
	v.lookAfterGates(now)
	v.lookForRates()
	v.tickMember(now, p)
	v.payOwed(now)
	v.turns(now, p)
	v.room.renew(now)
	if now-v.renewed >= policy.RenewEvery {
		v.renewed = now
		v.ledger.Renew(now)
	}
	if now-v.told >= tellEvery {
		v.told = now
		v.ledger.SetWall(now, v.host.Wall())
		v.adaptGates(now)
		v.flush()
	}
}

// InFlight is how many calls the VM has in flight, counted for each bucket that limits it.
func (v *VM) InFlight() int64 { return v.ledger.InFlight() }

// A Plugin is one configuration: a policy that does not change.
type Plugin struct {
	vm        *VM
	policy    *policy.Policy
	providers map[*policy.Provider]dialect.Dialect
	id        uint32        // the host's
	period    time.Duration // of its ticks
	lines     map[lineKey]*line
	budget    places                          // of all lines
	parts     map[*policy.Model][]policy.Part // of the classes
	yielding  int                             // classes from this one on let higher ones of other workers go first
	identity  []string                        // header names that must not come twice and do not leave
	baggage   bool                            // so does the baggage
	bodySays  bool                            // bodies may say who asks
	pools     map[*policy.Model]*pool
	families  map[string]tokens.Family // of the models that were asked for of late
}

// Configure makes a plugin, which the host knows by its id, from a policy in JSON.
func (v *VM) Configure(id uint32, config []byte) (p *Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			v.report("configure", r)
			p, err = nil, brief.Errorf("panic: %v", r)
		}
	}()
	if string(config) == AttemptConfig {
		v.attempts = true
		return &Plugin{vm: v, id: id}, nil
	}
	spec, err := policy.Decode(config)
	if err != nil {
		return nil, err
	}
	compiled, err := policy.Compile(spec)
	if err != nil {
		return nil, err
	}
	compiled.Since = v.host.Now()
	v.ledger.SetWall(compiled.Since, v.host.Wall())
	p = &Plugin{
		vm: v, id: id, period: TickEvery, policy: compiled, providers: map[*policy.Provider]dialect.Dialect{}, lines: map[lineKey]*line{},
		families: map[string]tokens.Family{},
		yielding: lowestYielding(compiled),
	}
	p.budget.plugin = p
	for _, pr := range compiled.Providers {
		d, ok := dialect.Parse(pr.Dialect)
		if !ok {
			return nil, brief.Errorf("unknown dialect %q", pr.Dialect)
		}
		p.providers[pr] = d
		p.split(pr)
	}
	if p.identity = identityHeaders(&compiled.Who); len(p.identity) > 32 {
		return nil, brief.Errorf("%d identity headers, at most 32", len(p.identity))
	}
	p.baggage, p.bodySays = usesBaggage(&compiled.Who), compiled.BodySays()
	p.makePools()
	return p, nil
}

// family gives the tokenizer of a model. There are dozens of patterns of names, and few models.
func (p *Plugin) family(model string) tokens.Family {
	f, ok := p.families[model]
	if !ok {
		name, _ := p.policy.Families.Lookup(model)
		f, _ = tokens.ParseFamily(name)
		if len(p.families) >= maxFamilies {
			clear(p.families) // callers make up names
		}
		if len(model) <= maxLogged {
			p.families[strings.Clone(model)] = f // it lies in the body's memory
		}
	}
	return f
}

// maxFamilies bounds the models whose tokenizers are remembered.
const maxFamilies = 64

// guard recovers from a panic in a callback that has no answer to give. Use: defer v.guard(name).
func (v *VM) guard(callback string) {
	if r := recover(); r != nil {
		v.report(callback, r)
	}
}

// report counts and logs a panic. It must not panic itself.
func (v *VM) report(callback string, r any) {
	defer func() { _ = recover() }()
	v.host.Log(Error, brief.Sprintf("weir: panic in %s: %v", callback, r))
	v.host.Add(&Metric{Name: metricPanics + ".callback." + callback}, 1)
}

// An emergency bucket lets a few requests pass where the policy says on_error: allow.
type emergency struct{ full int64 }

const (
	emergencyCost  = int64(time.Second)      // one request a second
	emergencyBurst = int64(10 * time.Second) // ten at once
)

func (e *emergency) take(now int64) bool {
	full := max(e.full, now) + emergencyCost
	if full-now > emergencyBurst {
		return false
	}
	e.full = full
	return true
}
