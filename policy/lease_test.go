// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A plainShare is a share in the most obvious way: a level in real numbers, and a list of what was taken.
type plainShare struct {
	terms  Terms
	window int64
	at     int64
	level  float64
	taken  [][2]int64 // when, units
}

func (p *plainShare) refill(now int64) {
	if now > p.at {
		p.level += float64(p.terms.Rate) * float64(now-p.at) / float64(p.window)
		p.at = now
	}
	p.level = min(p.level, float64(p.terms.Burst))
}

func (p *plainShare) put(at int64, t Terms, tokens int64) (returned float64) {
	p.refill(at)
	p.terms, p.level = t, p.level+float64(tokens)
	returned = max(p.level-float64(t.Burst), 0)
	p.level -= returned
	return returned
}

// remembered is what certainly counts in the window that ends now.
func (p *plainShare) remembered(now int64) (n int64) {
	for _, t := range p.taken {
		if t[0] > now-p.window {
			n += t[1]
		}
	}
	return n
}

func sharedMeter(window time.Duration, kind WindowKind) (Meter, meterState) {
	m := NewMeter(MeterSpec{Dimension: TPM, Limit: 10_000, Window: window, Kind: kind})
	m.shared = true
	return m, newMeterState(int64(time.Hour), m)
}

func drawTerms(t *rapid.T) (l Lease) {
	rate := rapid.Int64Range(0, 8000).Draw(t, "rate")
	l.Stage, l.Version = Leased, 1
	l.Terms = Terms{Rate: rate, Burst: rapid.Int64Range(0, rate/3+1).Draw(t, "burst"), Cap: rapid.Int64Range(0, 8000).Draw(t, "cap")}
	if l.Terms.Burst == 0 {
		l.Terms.Rate = 0 // what cannot be held does not refill
	}
	l.Floor = Terms{Rate: rate / 10, Burst: l.Terms.Burst / 10, Cap: rate / 10}
	if l.Floor.Burst == 0 {
		l.Floor.Rate = 0
	}
	return l
}

// Whatever is granted when, the bucket never has more than one that is kept in real numbers, nor less by more than the rounding; a
// lease ends by itself; nothing is admitted beyond the cap; what does not fit goes back.
func TestLeaseAgainstRealNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]WindowKind{Sliding, Continuous}).Draw(t, "kind")
		m, s := sharedMeter(time.Minute, kind)
		now := int64(time.Hour)
		p := &plainShare{window: int64(m.Window()), at: now}
		puts, took, clock := 0.0, int64(0), now
		var until, floorUntil int64
		var floor Terms
		lapse := func() {
			if until > 0 && now >= until {
				p.put(until, floor, 0)
				until = 0
			}
			if floorUntil > 0 && now >= floorUntil {
				p.put(floorUntil, Terms{}, 0)
				floorUntil = 0
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(0, rapid.SampledFrom([]int64{1e6, 1e9, 20e9}).Draw(t, "pace")).Draw(t, "time")
			now = max(now, clock)
			lapse()
			s.lapse(now, clock)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				l := drawTerms(t)
				l.Until = now + rapid.Int64Range(1, 15e9).Draw(t, "lease")
				l.FloorUntil = l.Until + rapid.Int64Range(0, 30e9).Draw(t, "forget")
				tokens := rapid.Int64Range(0, 3000).Draw(t, "tokens")
				sm := SharedMeter{m, &s, clock}
				got, want := sm.Put(now, l, tokens), p.put(now, l.Terms, tokens)
				until, floorUntil, floor = l.Until, l.FloorUntil, l.Floor
				if puts++; float64(got) > want+1+puts/1000 {
					t.Fatalf("%d given back, %v did not fit", got, want)
				}
			default:
				n := rapid.Int64Range(1, 2000).Draw(t, "units")
				if s.wait(now, n) > 0 {
					break
				}
				if kind == Sliding && p.remembered(now)+n > p.terms.Cap {
					t.Fatalf("%d admitted beside %d in the window, the cap is %d", n, p.remembered(now), p.terms.Cap)
				}
				clock = max(now, clock+1)
				s.take(clock, n)
				p.refill(now)
				p.level -= float64(n)
				p.taken = append(p.taken, [2]int64{clock, n})
				took++
			}
			p.refill(now)
			if got := s.level(now); float64(got) > max(p.level, 0)+1.5 && p.terms.Rate > 0 || float64(got) < min(p.level, float64(p.terms.Burst))-2-float64(took+int64(puts))/10 && s.share.closed == 0 {
				t.Fatalf("the bucket has %d, in real numbers %v; %+v", got, p.level, p.terms)
			}
		}
	})
}

// A call that is settled late leaves no more than one that was charged right in the first place, however shares have moved since.
func TestLateRefundMintsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]WindowKind{Sliding, Continuous}).Draw(t, "kind")
		m, late := sharedMeter(time.Minute, kind)
		_, right := sharedMeter(time.Minute, kind)
		now := int64(time.Hour)
		var open [][3]int64 // at, reserved, actual
		returned := [2]int64{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now += rapid.Int64Range(1, rapid.SampledFrom([]int64{1e6, 1e9, 5e9}).Draw(t, "pace")).Draw(t, "time")
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				l, tokens := drawTerms(t), rapid.Int64Range(0, 1000).Draw(t, "tokens")
				l.Terms.Rate, l.Terms.Burst, l.Terms.Cap = l.Terms.Rate+1, l.Terms.Burst+1, 1_000_000
				l.Until = now + int64(time.Hour)
				for i, s := range []*meterState{&late, &right} {
					sm := SharedMeter{m, s, now}
					returned[i] += sm.Put(now, l, tokens)
				}
			case 1:
				reserved := rapid.Int64Range(0, 900).Draw(t, "reserved")
				if late.wait(now, reserved) > 0 {
					break
				}
				actual := rapid.Int64Range(0, reserved).Draw(t, "actual")
				late.take(now, reserved)
				right.take(now, actual)
				open = append(open, [3]int64{now, reserved, actual})
			case 2:
				if len(open) > 0 {
					i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
					late.settle(open[i][0], now, open[i][1], open[i][2])
					open = append(open[:i], open[i+1:]...)
				}
			}
			if a, b := late.level(now)+returned[0], right.level(now)+returned[1]; a > b+1 {
				t.Fatalf("%d in the bucket and given back, charged right it would be %d", a, b)
			}
		}
	})
}
