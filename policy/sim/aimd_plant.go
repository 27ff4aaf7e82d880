// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/feedback"
)

// An adapter is what turns answers into a rate: the production controller, or the naive one beside it.
type adapter interface {
	Step(now int64, s feedback.Sample) (feedback.Change, bool)
	Rate() policy.Share
	Epoch() uint32
}

// aimdLimit is the limit of the policy, in requests a second: half above what the provider really gives.
const aimdLimit = 150

// An aimdPlant is one loop: clients with more to send than fits, their limiter, a provider that hides its capacity, and the
// way back from its answers to the limiter's rate.
type aimdPlant struct {
	clock    Clock
	adapter  adapter
	delay    time.Duration // from an answer to the rate that follows: half for the way there, half for the push; up to 1 s of report comes on top
	capacity func(at int64) float64
	until    int64
	limit    float64 // of the policy, requests a second
	jitter   *rand.Rand

	rate     float64 // in force at the limiter, requests a second
	epoch    uint32  // of it
	level    float64 // of the provider's bucket
	filledAt int64
	samples  map[uint32]*feedback.Sample // by epoch, since the last report
	log      aimdLog
}

// An aimdLog is what is measured, from the time from on.
type aimdLog struct {
	from           int64
	sent, rejected int64
	room           float64 // what the provider would have taken
	cuts           []int64 // when
	rates          []Point // decided, of the limiter's rate in requests a second
}

// providerBurst is how many requests the provider takes at once: limits.md (c) measured with it.
const providerBurst = 5

func (p *aimdPlant) run() {
	p.rate, p.level, p.samples = p.perSecond(p.adapter.Rate()), providerBurst, map[uint32]*feedback.Sample{}
	p.clock.At(0, p.send)
	p.clock.Every(time.Second, func() bool {
		p.report()
		return p.clock.Now() < p.until
	})
	p.clock.Run(p.until)
}

func (p *aimdPlant) perSecond(s policy.Share) float64 {
	return float64(s) / float64(policy.Whole) * p.limit
}

// send sends one request and plans the next. The clients always have one waiting, so the limiter paces them.
func (p *aimdPlant) send() {
	now := p.clock.Now()
	class := feedback.Classify(p.provider(now)).Class
	s := p.sample(p.epoch)
	s.Sent++
	s.Answered++
	if class == feedback.Congestion {
		s.Rejected++
	}
	if now >= p.log.from {
		p.log.sent++
		if class == feedback.Congestion {
			p.log.rejected++
		}
	}
	gap := float64(time.Second) / p.rate
	p.clock.After(time.Duration(gap*(0.9+0.2*p.jitter.Float64())), p.send)
}

func (p *aimdPlant) sample(epoch uint32) *feedback.Sample {
	s := p.samples[epoch]
	if s == nil {
		s = &feedback.Sample{Epoch: epoch}
		p.samples[epoch] = s
	}
	return s
}

var (
	aimdAnswer = feedback.Reply{Status: 200, Body: []byte(`{"id":"chatcmpl-1","choices":[{"message":{"content":"hello"}}]}`)}
	aimdRefuse = feedback.Reply{Status: 429, Body: []byte(`{"error":{"message":"Rate limit reached on requests per min (RPM)","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)}
)

// provider is a bucket that refills at the hidden capacity, and says nothing of it.
func (p *aimdPlant) provider(now int64) feedback.Reply {
	c := p.capacity(now)
	gained := c * float64(now-p.filledAt) / float64(time.Second)
	p.level, p.filledAt = min(p.level+gained, providerBurst), now
	if now >= p.log.from {
		p.log.room += gained
	}
	if p.level < 1 {
		return aimdRefuse
	}
	p.level--
	return aimdAnswer
}

// report takes what was answered in the last second to the controller, and a changed rate back to the limiter.
func (p *aimdPlant) report() {
	sent := p.samples
	sent[p.epoch] = p.sample(p.epoch)
	sent[p.epoch].Could = int64(p.rate + 0.5)
	p.samples = map[uint32]*feedback.Sample{}
	p.clock.After(p.delay/2, func() {
		for epoch := uint32(0); epoch <= p.adapter.Epoch(); epoch++ {
			if s := sent[epoch]; s != nil {
				p.step(*s)
			}
		}
		p.log.rates = append(p.log.rates, Point{seconds(p.clock.Now()), p.perSecond(p.adapter.Rate())})
	})
}

func (p *aimdPlant) step(s feedback.Sample) {
	change, ok := p.adapter.Step(p.clock.Now(), s)
	if !ok {
		return
	}
	if change.To < change.From && change.At >= p.log.from {
		p.log.cuts = append(p.log.cuts, change.At)
	}
	p.clock.After(p.delay/2, func() { p.rate, p.epoch = p.perSecond(change.To), change.Epoch })
}

// naive cuts on each report that has a rejection in it, whenever that was sent: what a client does that takes every 429 for
// news. It is here to be compared with.
type naive struct {
	rules feedback.Rules
	rate  policy.Share
	since int64
}

func (n *naive) Rate() policy.Share { return n.rate }
func (n *naive) Epoch() uint32      { return 0 }

func (n *naive) Step(now int64, s feedback.Sample) (feedback.Change, bool) {
	from, why := n.rate, feedback.NoRejection
	switch {
	case s.Rejected > 0:
		n.rate, why, n.since = max(n.rate*n.rules.Decrease/policy.Whole, n.rules.Floor), feedback.WasRejected, now
	case now-n.since >= n.rules.Per:
		n.rate, n.since = min(n.rate+n.rules.Increase, n.rules.Ceiling), now
	}
	return feedback.Change{At: now, From: from, To: n.rate, Reason: why}, n.rate != from
}
