// SPDX-License-Identifier: Apache-2.0

package sim

// An Experiment is something to simulate, by the name that `weir simulate NAME` takes.
type Experiment struct {
	Name  string
	About string // one line
	Run   func(Options) (*Report, error)
}

// Options are what all experiments take.
type Options struct {
	Seed     uint64
	Quick    bool                // fewer repetitions, for tests
	Jitter   Jitter              // of clients that retry
	Progress func(done, all int) // may be nil
}

func (o *Options) progress(done, all int) {
	if o.Progress != nil {
		o.Progress(done, all)
	}
}

// A Report is what an experiment found.
type Report struct {
	Name   string   `json:"name"`
	Seed   uint64   `json:"seed"`
	Rows   any      `json:"rows"` // a slice of structs with JSON names: what scripts read
	Table  Table    `json:"-"`    // the same for people
	Charts []Chart  `json:"-"`
	Checks []Check  `json:"checks,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// A Table is for people. All columns but the first two are aligned to the right.
type Table struct {
	Header []string
	Lines  [][]string
}

// A Chart shows numbers over time, or over anything else.
type Chart struct {
	Title, X, Y string
	Lines       []Line
}

// A Line is one curve of a chart.
type Line struct {
	Name   string
	Points []Point
}

// A Point is one value of a curve.
type Point struct{ X, Y float64 }

// A Check is something that must hold, with what was found.
type Check struct {
	What  string `json:"what"`
	Want  string `json:"want"`
	Found string `json:"found"`
	OK    bool   `json:"ok"`
}

// Failed says whether a check of the report does not hold.
func (r *Report) Failed() bool {
	for _, c := range r.Checks {
		if !c.OK {
			return true
		}
	}
	return false
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
