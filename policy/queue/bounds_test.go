// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A load is arrivals at a server that sends one entry each second.
type load struct {
	Config   Config
	Arrivals []arrival
}

type arrival struct {
	At    int64 // ns
	Class int
}

func anyLoad(d Discipline) *rapid.Generator[load] {
	return rapid.Custom(func(t *rapid.T) load {
		l := load{Config: anyConfig(t, d)}
		l.Config.Entries, l.Config.Bytes = 1000, 0
		at := int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "arrivals") {
			at += rapid.SampledFrom([]int64{0, 0, 1, 2, 5}).Draw(t, "gap") * 5e8
			l.Arrivals = append(l.Arrivals, arrival{at, rapid.IntRange(0, len(l.Config.Classes)-1).Draw(t, "class")})
		}
		return l
	})
}

// A served is one entry, what it found and what came of it.
type served struct {
	arrival
	ahead, own int // queued when it came: of all classes, of its own
	sentAt     int64
	before     []int // of each class, sent from its arrival to its own send
	late       int   // of these, since it had reached its class's threshold
}

// A meter is a server that sends one entry a turn, and notes.
type meter struct {
	now    int64
	free   bool
	config Config
	all    []served
}

func (m *meter) Try(_ Handle, e Entry) Answer {
	if !m.free {
		return Stop(m.now + 1e9)
	}
	m.free = false
	m.all[e.ID].sentAt = m.now
	for i := range m.all {
		if s := &m.all[i]; s.sentAt < 0 {
			s.before[e.Class]++
			if limit := int64(m.config.Classes[s.Class].Threshold); limit > 0 && m.now-s.At >= limit {
				s.late++
			}
		}
	}
	return Sent()
}

func (m *meter) Timeout(Handle, Entry) {}

// serve runs a load on a queue of a configuration that fault may spoil.
func (l load) serve(fault func(*Config)) ([]served, error) {
	c := l.Config
	c.Classes = append([]Class(nil), c.Classes...)
	if fault != nil {
		fault(&c)
	}
	q, err := New(c)
	if err != nil {
		return nil, err
	}
	m, todo := &meter{config: l.Config}, l.Arrivals
	for slot := int64(0); len(todo) > 0 || q.Len() > 0; slot += 1e9 {
		for ; len(todo) > 0 && todo[0].At <= slot; todo = todo[1:] {
			a := todo[0]
			m.all = append(m.all, served{arrival: a, ahead: q.Len(), own: q.Waiting(a.Class), sentAt: -1, before: make([]int, len(c.Classes))})
			q.Push(a.At, Entry{ID: uint64(len(m.all) - 1), Class: a.Class}, 0)
		}
		m.now, m.free = slot, true
		q.Turn(slot, m)
	}
	return m.all, nil
}

// bound says whether an entry waited no longer than the package comment promises.
func (l load) bound(s served) error {
	sum := 0
	for _, n := range s.before {
		sum += n
	}
	most := sum
	switch l.Config.Discipline {
	case FIFO:
		most = s.ahead
	case Strict:
		if s.Class == 0 {
			most = s.own
		}
	case Threshold:
		if a := l.Config.Classes[s.Class].Threshold; a > 0 {
			if s.late > s.ahead {
				return fmt.Errorf("%d went before it after its threshold, and it found %d", s.late, s.ahead)
			}
			if wait := time.Duration(s.sentAt - s.At); wait > a+time.Duration(s.ahead+1)*time.Second {
				return fmt.Errorf("it waited %v: threshold %v, found %d", wait, a, s.ahead)
			}
		}
	case Linear:
		most = s.ahead + l.higherSoon(s)
	case Weighted:
		most = s.own
		for j, c := range l.Config.Classes {
			if j != s.Class {
				most += (s.own+1)*int(max(c.Weight, 1))/int(max(l.Config.Classes[s.Class].Weight, 1)) + 1
			}
		}
	}
	if sum > most {
		return fmt.Errorf("%d went before it, more than %d", sum, most)
	}
	return nil
}

// higherSoon counts who arrives with a higher priority before the entry has made up for the highest.
func (l load) higherSoon(s served) (n int) {
	own := l.Config.Classes[s.Class].Priority
	behind := 0.0
	for _, c := range l.Config.Classes {
		behind = max(behind, c.Priority-own)
	}
	until := s.At + int64(behind/l.Config.Rate*1e9)
	for _, a := range l.Arrivals {
		if a.At >= s.At && a.At < until && l.Config.Classes[a.Class].Priority > own {
			n++
		}
	}
	return n
}

func (l load) holds(fault func(*Config)) error {
	all, err := l.serve(fault)
	for i, s := range all {
		if err == nil && l.bound(s) != nil {
			err = fmt.Errorf("entry %d, %+v: %w", i, s, l.bound(s))
		}
	}
	return err
}

// Nobody waits longer than the package comment promises.
func TestStarvationBounds(t *testing.T) {
	for d := range numDisciplines {
		t.Run(d.String(), func(t *testing.T) {
			loads := anyLoad(d)
			rapid.Check(t, func(t *rapid.T) {
				if err := loads.Draw(t, "load").holds(nil); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A bound that everything meets says nothing: each is broken by another discipline, or by slightly wrong settings.
func TestStarvationBoundsBite(t *testing.T) {
	as := func(d Discipline) func(*Config) {
		return func(c *Config) {
			c.Discipline, c.Rate = d, max(c.Rate, 0.5)
		}
	}
	for name, fault := range map[string]struct {
		of    Discipline
		spoil func(*Config)
	}{
		"strict, held to FIFO's": {FIFO, as(Strict)}, "FIFO, held to strict's": {Strict, as(FIFO)},
		"strict, held to a threshold": {Threshold, as(Strict)}, "strict, held to linear aging": {Linear, as(Strict)},
		"strict, held to weights": {Weighted, as(Strict)}, "FIFO, held to weights": {Weighted, as(FIFO)},
		"thresholds of twice the length": {Threshold, func(c *Config) {
			for i := range c.Classes {
				c.Classes[i].Threshold *= 2
			}
		}},
		"half the rate":    {Linear, func(c *Config) { c.Rate /= 2 }},
		"twice one weight": {Weighted, func(c *Config) { c.Classes[0].Weight = 2 * max(c.Classes[0].Weight, 1) }},
	} {
		loads, found := anyLoad(fault.of), false
		for seed := 0; seed < 2000 && !found; seed++ {
			found = loads.Example(seed).holds(fault.spoil) != nil
		}
		if !found {
			t.Errorf("the bound allows: %s", name)
		}
	}
}
