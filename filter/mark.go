// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/weirproxy/weir/policy"
)

// Priority holds across workers: each tells the others, for each pool of a provider, which is the highest class that waits for
// it there. A lower class, queued or just arriving, then lets that one go first. What a worker says is a lease: it ends by
// itself if the worker dies, and a worker that says nothing in time costs an inversion and nothing else.

// A mark is what one worker says of a pool. It lies in shared data as it is, beside those of the others.
type mark struct {
	vm        uint64
	expires   int64  // ns
	until     int64  // ns: when the one that waits expects to go
	class     uint32 // index; 0 is the highest
	dimension uint32 // for which it waits
}

const (
	markSize = int(unsafe.Sizeof(mark{}))

	// markLease is how long a mark lives: two ticks. It is renewed in each tick, and taken back as soon as nobody waits any more,
	// so its end matters only if the worker died.
	markLease = 2 * int64(TickEvery)
	markEvery = int64(TickEvery) / 2

	noClass = 1 << 31
)

// markName is where the marks of a pool lie. Lists of classes that differ have nothing to say to each other.
func (p *Plugin) markName(provider *policy.Provider, model *policy.Model) string {
	names := []string{"waits", provider.Name, model.Pattern}
	for _, c := range p.policy.Classes {
		names = append(names, c.Name)
	}
	return string(binary.LittleEndian.AppendUint64([]byte{'W'}, uint64(p.policy.Hasher.Key(policy.TierProvider, names...))))
}

// lowestYielding is the highest class that ever lets another go first: there must be a higher one that may wait. Requests of
// classes above it never ask what other workers say.
func lowestYielding(p *policy.Policy) int {
	if p.Queue.Weighted {
		return len(p.Classes)
	}
	for i, c := range p.Classes {
		if c.Queues {
			return i + 1
		}
	}
	return len(p.Classes)
}

// marks reads what the workers say.
func (l *line) marks() (list []mark, cas uint32) {
	value, cas, ok := l.plugin.vm.host.Get(l.waits)
	if !ok {
		return nil, policy.CreateCAS
	}
	if n := len(value) / markSize; n > 0 {
		list = unsafe.Slice((*mark)(unsafe.Pointer(unsafe.SliceData(value))), n)
	}
	return list, cas
}

func (m *mark) lives(now int64) bool { return m.expires > now && m.expires <= now+markLease }

// look finds the highest class that waits in another worker, once in a turn.
func (l *line) look(now int64) *mark {
	if l.looked != now {
		l.looked, l.above = now, mark{class: noClass}
		list, _ := l.marks()
		for i := range list {
			if m := &list[i]; m.vm != l.plugin.vm.id && m.class < l.above.class && m.lives(now) {
				l.above = *m
			}
		}
	}
	return &l.above
}

// yields says whether a request of a class and age has to let another worker's go first, and which: one of a higher class, until
// it has itself waited for as long as its class allows that.
func (l *line) yields(now int64, class int, age time.Duration) *mark {
	p := l.plugin
	if l.waits == "" || class < p.yielding {
		return nil
	}
	if aging := p.policy.Classes[class].Aging; aging > 0 && age >= aging {
		return nil
	}
	if m := l.look(now); int(m.class) < class {
		return m
	}
	return nil
}

// passed is the refusal of a request that lets another go first: by what that one waits for.
func (l *line) passed(now int64, m *mark, cost *policy.Cost) policy.Refusal {
	r := policy.Refusal{
		Reason: policy.LimitExceeded, Tier: policy.TierProvider, Dimension: policy.Dimension(m.dimension),
		Wait: time.Duration(max(m.until, m.expires) - now),
	}
	for _, t := range l.model.Limit.Meters {
		if t.Dimension == r.Dimension {
			r.Limit, r.Burst, r.Window, r.Need = t.Limit(), t.Burst(), t.Window(), cost.In(t.Dimension.Unit())
		}
	}
	if r.Dimension == policy.InFlight {
		r.Limit = l.model.Limit.InFlight
	}
	return r
}

// tell says after a turn who waits here, if that is new or was said too long ago.
func (l *line) tell(now int64) {
	if l.waits == "" {
		return
	}
	defer l.plugin.vm.guard("tell")
	say := mark{vm: l.plugin.vm.id}
	if class := l.queue.Stopped(now); class >= 0 && class < len(l.plugin.policy.Classes)-1 {
		say.class, say.dimension = uint32(class), uint32(l.stop.Dimension)
		say.expires, say.until = now+markLease, now+int64(l.stop.Wait)
	}
	silent := l.said.expires <= now
	if say.expires == 0 && silent || say.expires > 0 && !silent && say.class == l.said.class && say.expires-l.said.expires < markEvery {
		return
	}
	if l.write(now, say) {
		l.said = say
	}
}

// write puts this worker's mark in the place of its last one, or of one that is over.
func (l *line) write(now int64, say mark) bool {
	for range markTries {
		list, cas := l.marks()
		at := -1
		for i := range list {
			if list[i].vm == say.vm {
				at = i
				break
			}
			if at < 0 && !list[i].lives(now) {
				at = i
			}
		}
		if at < 0 {
			list, at = append(list[:len(list):len(list)], say), len(list)
		}
		list[at] = say
		if l.plugin.vm.host.Set(l.waits, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*markSize), cas) {
			return true
		}
	}
	return false // the next turn says it
}

// markTries bounds how often a worker tries to say something while others are faster.
const markTries = 8
