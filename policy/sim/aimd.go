// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// AIMD is the experiment `weir simulate aimd`.
func AIMD() Experiment {
	return Experiment{"aimd", "a rate follows a provider that hides its capacity, constant and stepping, by what it rejects", runAIMD}
}

// An AIMDRow is one loop. Shares are parts of 1; a time is null where there is none.
type AIMDRow struct {
	Variant      string   `json:"variant"`
	Capacity     string   `json:"capacity"`
	Limit        float64  `json:"limit"` // of the policy, requests a second
	DelayS       float64  `json:"delay_s"`
	Utilisation  float64  `json:"utilisation"`
	Rejected     float64  `json:"rejected_share"`
	Cuts         int      `json:"cuts"`
	CutsPerEpoch float64  `json:"cuts_per_epoch"`
	PeriodS      *float64 `json:"sawtooth_s"`
	LowestRate   float64  `json:"lowest_rate"`
	SettleDownS  *float64 `json:"settle_down_s"`
	SettleUpS    *float64 `json:"settle_up_s"`

	rates []Point
}

// The capacity of the provider, in requests a second, and when it steps.
const (
	fullCapacity = 100.0
	lowCapacity  = 40.0
	warmUp       = 120 * int64(time.Second) // not measured: the rate starts at the limit, half above the capacity
	band         = 0.15                     // of the capacity: how near is settled
)

type aimdVariant struct {
	name string
	make func() adapter
}

func aimdVariants() []aimdVariant {
	controller := func(change func(*feedback.Rules)) func() adapter {
		return func() adapter {
			r := feedback.DefaultRules()
			change(&r)
			return feedback.NewController(r, policy.Whole, 0)
		}
	}
	return []aimdVariant{
		{"defaults", controller(func(*feedback.Rules) {})},
		{"climb: fast", controller(func(r *feedback.Rules) { r.Fast = true })},
		{"by share", controller(func(r *feedback.Rules) { r.ByShare = true })},
		{"every 429 cuts", func() adapter { return &naive{rules: feedback.DefaultRules(), rate: policy.Whole} }},
	}
}

func runAIMD(o Options) (*Report, error) {
	r := &Report{Name: "aimd", Seed: o.Seed, Notes: aimdNotes}
	var rows []AIMDRow
	all := len(aimdVariants())*4 + 6
	for _, v := range aimdVariants() {
		for _, delay := range []time.Duration{2 * time.Second, 5 * time.Second} {
			steady := aimdSteady(o, v, delay, aimdLimit)
			o.progress(len(rows)+1, all)
			stepped := aimdStepped(o, v, delay)
			rows = append(rows, steady, stepped)
			o.progress(len(rows), all)
			r.Checks = append(r.Checks, aimdChecks(&steady, &stepped)...)
			if delay == 2*time.Second {
				r.Charts = append(r.Charts, aimdChart(&stepped, o))
			}
		}
	}
	for _, v := range aimdVariants()[:2] {
		for _, limit := range []float64{100, 200, 300} {
			rows = append(rows, aimdSteady(o, v, 2*time.Second, limit))
			o.progress(len(rows), all)
		}
	}
	r.Rows, r.Table = rows, aimdTable(rows)
	return r, nil
}

// stepAt is when the capacity falls, and when it is back.
func stepAt(o Options) (down, up, end int64) {
	s := int64(time.Second)
	if o.Quick {
		return 400 * s, 700 * s, 1300 * s
	}
	return 900 * s, 1800 * s, 3000 * s
}

func aimdSteady(o Options, v aimdVariant, delay time.Duration, limit float64) AIMDRow {
	until := int64(2 * time.Hour)
	if o.Quick {
		until = int64(40 * time.Minute)
	}
	p := &aimdPlant{delay: delay, until: until, limit: limit, capacity: func(int64) float64 { return fullCapacity }}
	return p.measure(o, v, "constant")
}

func aimdStepped(o Options, v aimdVariant, delay time.Duration) AIMDRow {
	down, up, end := stepAt(o)
	p := &aimdPlant{delay: delay, until: end, limit: aimdLimit, capacity: func(at int64) float64 {
		if at >= down && at < up {
			return lowCapacity
		}
		return fullCapacity
	}}
	row := p.measure(o, v, "100-40-100")
	row.SettleDownS = settled(row.rates, down, up, lowCapacity)
	row.SettleUpS = settled(row.rates, up, end, fullCapacity)
	return row
}

// measure runs the loop with a variant.
func (p *aimdPlant) measure(o Options, v aimdVariant, name string) AIMDRow {
	p.adapter, p.jitter, p.log.from = v.make(), Rand(o.Seed, v.name+name+p.delay.String()), warmUp
	p.run()
	row := AIMDRow{Variant: v.name, Capacity: name, Limit: p.limit, DelayS: p.delay.Seconds(), Cuts: len(p.log.cuts), rates: p.log.rates}
	row.Utilisation = float64(p.log.sent-p.log.rejected) / p.log.room
	row.Rejected = float64(p.log.rejected) / float64(p.log.sent)
	row.PeriodS, row.CutsPerEpoch = epochsOf(p.log.cuts, p.delay)
	row.LowestRate = math.Inf(1)
	for _, q := range p.log.rates {
		if q.X >= seconds(warmUp) {
			row.LowestRate = min(row.LowestRate, q.Y)
		}
	}
	return row
}

// epochsOf puts cuts together that were made before the one before them had come back as an answer: they are about the same
// news. It gives the mean time from one such epoch to the next, and the cuts in each.
func epochsOf(cuts []int64, delay time.Duration) (period *float64, perEpoch float64) {
	if len(cuts) == 0 {
		return nil, 0
	}
	epochs, first, last := 1, cuts[0], cuts[0]
	for i := 1; i < len(cuts); i++ {
		if cuts[i]-cuts[i-1] >= int64(delay) {
			epochs, last = epochs+1, cuts[i]
		}
	}
	if epochs > 1 {
		s := seconds(last-first) / float64(epochs-1)
		period = &s
	}
	return period, float64(len(cuts)) / float64(epochs)
}

// settled is how long after from the rate comes into the band around the capacity; nil if it does not before until.
func settled(rates []Point, from, until int64, capacity float64) *float64 {
	for _, p := range rates {
		if p.X >= seconds(from) && p.X < seconds(until) && math.Abs(p.Y-capacity) <= band*capacity {
			s := p.X - seconds(from)
			return &s
		}
	}
	return nil
}

func optional(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *s)
}
