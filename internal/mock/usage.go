// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"math"
	"strconv"
)

// Report says how truthfully an answer reports its usage.
type Report string

const (
	ReportHonest   Report = ""         // what was used
	ReportNone     Report = "none"     // no usage in the answer
	ReportNull     Report = "null"     // "usage":null
	ReportZero     Report = "zero"     // all counters 0 after visible text
	ReportNegative Report = "negative" // all counters -1
	ReportHuge     Report = "huge"     // a million times what was used
)

// Usage says how much of the declared output is used, and how it is reported.
type Usage struct {
	// Fraction of the declared maximum, rounded up; 0 stands for all of it.
	Fraction float64
	Report   Report
}

// ParseUsage reads a fraction such as "0.05", or the name of a Report, or "full".
func ParseUsage(s string) (Usage, error) {
	switch s {
	case "", "full", "honest":
		return Usage{}, nil
	}
	if u := (Usage{Report: Report(s)}); u.validate() == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f == 0 {
		return Usage{}, fmt.Errorf("usage %q: want a fraction above 0, full, none, null, zero, negative or huge", s)
	}
	u := Usage{Fraction: f}
	return u, u.validate()
}

func (u Usage) validate() error {
	switch u.Report {
	case ReportHonest, ReportNone, ReportNull, ReportZero, ReportNegative, ReportHuge:
	default:
		return fmt.Errorf("usage report %q is unknown", u.Report)
	}
	if !(u.Fraction >= 0 && u.Fraction <= 1000) { // written so that NaN fails
		return fmt.Errorf("usage fraction %v: want 0 to 1000", u.Fraction)
	}
	return nil
}

// String is the form that ParseUsage reads.
func (u Usage) String() string {
	switch {
	case u.Report != ReportHonest:
		return string(u.Report)
	case u.Fraction == 0:
		return "full"
	}
	return strconv.FormatFloat(u.Fraction, 'g', -1, 64)
}

// output is how much of the reserved output gets used.
func (u Usage) output(reserved int64) int64 {
	if u.Fraction == 0 {
		return reserved
	}
	return min(maxTokens, int64(math.Ceil(u.Fraction*float64(reserved))))
}

// counters turns true figures into reported ones.
func (r Report) counters(in, out int64) (int64, int64) {
	switch r {
	case ReportZero:
		return 0, 0
	case ReportNegative:
		return -1, -1
	case ReportHuge:
		return in * 1_000_000, out * 1_000_000
	}
	return in, out
}
