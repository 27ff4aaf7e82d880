// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"math"
	"time"

	"github.com/weirproxy/weir/policy/brief"
)

// A Discipline says which class goes next. Within a class it is always first come, first served.
type Discipline uint8

// Disciplines. The package comment has the bound of each.
const (
	FIFO           Discipline = iota // who came first, whatever the class
	Strict                           // the highest class
	Threshold                        // the highest class, but before it who is older than its class's threshold, by age
	Linear                           // the highest priority + rate x age
	Weighted                         // classes that have somebody waiting get sends in the ratio of their weights
	numDisciplines                   // how many there are
)

var disciplineNames = [numDisciplines]string{"fifo", "strict", "threshold", "linear", "weighted"}

func (d Discipline) String() string {
	if d >= numDisciplines {
		return "unknown"
	}
	return disciplineNames[d]
}

// Bounds of a configuration.
const (
	MaxClasses = 8
	MaxEntries = 1 << 16 // more would wait longer than any caller does

	// MaxWeight keeps weighted turns exact: ringTurn is a multiple of every weight, so that no share is ever rounded.
	MaxWeight = 16
	fullTurn  = 720720 // least common multiple of 1..16

	// maxCost bounds what one entry weighs, so that sums of turns stay far from the end of int64.
	maxCost = 1 << 32
)

// A Class is how one priority class waits.
type Class struct {
	Threshold time.Duration // Threshold: age from which it goes before all; 0: it never does
	Priority  float64       // Linear: priority of an entry of age 0
	Weight    int64         // Weighted: 1..MaxWeight; 0 stands for 1
}

// A Config says how a queue is bounded and ordered.
type Config struct {
	Entries    int   // entries at most, 1..MaxEntries
	Bytes      int64 // bytes of all entries at most
	Discipline Discipline
	Classes    []Class // the highest first, 1..MaxClasses
	Rate       float64 // Linear: priority gained in a second of waiting, above 0
	Budget     Budget  // shared with other queues; may be nil
}

// maxLead is the longest lead of one class before another under Linear; longer ones stand for ever.
const maxLead = float64(365 * 24 * time.Hour)

func (c *Config) check() error {
	switch {
	case c.Entries < 1 || c.Entries > MaxEntries:
		return brief.Errorf("queue: %d entries are not between 1 and %d", c.Entries, MaxEntries)
	case c.Bytes < 0:
		return errors.New("queue: bytes below 0")
	case len(c.Classes) < 1 || len(c.Classes) > MaxClasses:
		return brief.Errorf("queue: %d classes are not between 1 and %d", len(c.Classes), MaxClasses)
	case c.Discipline >= numDisciplines:
		return errors.New("queue: unknown discipline")
	case c.Discipline == Linear && !(c.Rate > 0):
		return errors.New("queue: linear aging needs a rate above 0")
	}
	for i, class := range c.Classes {
		if class.Threshold < 0 || class.Weight < 0 || class.Weight > MaxWeight || math.IsNaN(class.Priority) {
			return brief.Errorf("queue: class %d: a threshold is 0 or more, a weight 1 to %d", i, MaxWeight)
		}
	}
	return nil
}

// lead is by how much, in ns, an entry of the class may arrive later than one of priority 0 and still go first: the time in
// which the other would gain the difference. With it the order of two entries never changes (a virtual deadline).
func (c *Config) lead(class Class) int64 {
	ns := class.Priority / c.Rate * float64(time.Second)
	return int64(min(max(ns, -maxLead), maxLead))
}
