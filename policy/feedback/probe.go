// SPDX-License-Identifier: Apache-2.0

package feedback

// A Probe finds the limits of a provider that tells none: it starts low, watches, and raises what is used up,
// one dimension at a time, so that a rejection says which limit it met. What it found is for the configuration; from there
// on a [Controller] looks after it.
type Probe struct {
	limits  [NumProbed]int64
	good    [NumProbed]int64 // what was used without a rejection before the last raise; 0 if it was never raised
	found   [NumProbed]bool
	raising Probed
	raised  bool
	since   int64 // ns: of the last change
}

// A Probed is a dimension that a probe raises.
type Probed uint8

// Probed dimensions.
const (
	ProbedInFlight Probed = iota
	ProbedRequests        // a minute
	ProbedTokens          // a minute
	NumProbed             // how many there are
)

var probed = [NumProbed]Dimension{{InFlight, 0}, {Requests, minute}, {Tokens, minute}}

// Dimension is what it counts.
func (p Probed) Dimension() Dimension { return probed[p] }

// What a probe starts with: 2 in flight, and rates under the smallest that any provider gives who is
// paid (Anthropic's first tier: 50 requests and 30,000 tokens a minute). It watches for a minute, the window of what it
// looks for, then raises by half. Rejections within probeRest of a change are about what was before it.
const (
	probeInFlight = 2
	probeRequests = 20
	probeTokens   = 20_000
	probeWatch    = minute
	probeRest     = 10 * second
	probeAnswers  = 5       // without so many a watch says nothing
	probeBusy     = 750_000 // of a limit: only what is used up is raised
)

// A ProbeSample is what was seen since the one before.
type ProbeSample struct {
	Used     [NumProbed]int64 // most in flight; requests and tokens in the last minute
	Answered int64
	Rejected int64    // with [Congestion]
	By       Quantity // what the rejections named; Unknown if nothing
}

// A ProbeFinding is one step of a probe.
type ProbeFinding struct {
	At       int64
	Probed   Probed
	From, To int64
	Found    bool // a rejection showed that there is no more than To; else it was raised to see
}

// NewProbe starts at the time now.
func NewProbe(now int64) *Probe {
	return &Probe{limits: [NumProbed]int64{probeInFlight, probeRequests, probeTokens}, since: now}
}

// Limits are those to keep for now.
func (p *Probe) Limits() [NumProbed]int64 { return p.limits }

// Done says whether all limits are known.
func (p *Probe) Done() bool { return p.found == [NumProbed]bool{true, true, true} }

// Found says whether a limit is known.
func (p *Probe) Found(d Probed) bool { return p.found[d] }

// AtLeast has a limit that is not known be tried from there on, if that is more.
func (p *Probe) AtLeast(d Probed, limit int64) {
	if !p.found[d] {
		p.limits[d] = min(max(p.limits[d], limit), maxCount)
	}
}

// Tell sets a limit that became known in another way, from headers or an operator.
func (p *Probe) Tell(d Probed, limit int64) { p.limits[d], p.found[d] = max(limit, 1), true }

// Step takes a sample, and says whether it changed a limit or found one.
func (p *Probe) Step(now int64, s ProbeSample) (ProbeFinding, bool) {
	switch {
	case s.Rejected > 0 && (now-p.since >= probeRest || !p.raised):
		return p.reject(now, p.blame(s.By))
	case s.Rejected > 0 || now-p.since < probeWatch:
		return ProbeFinding{}, false
	}
	p.since = now
	if d, ok := p.usedUp(&s); ok && s.Answered >= probeAnswers {
		return p.raise(now, d)
	}
	return ProbeFinding{}, false
}

// blame is the dimension that a rejection is about: the one that it names, or the one that was raised last.
func (p *Probe) blame(by Quantity) Probed {
	switch by {
	case InFlight:
		return ProbedInFlight
	case Requests:
		return ProbedRequests
	case Tokens, InputTokens, OutputTokens:
		return ProbedTokens
	}
	return p.raising
}

// reject goes back to what was good, or to half where nothing was.
func (p *Probe) reject(now int64, d Probed) (ProbeFinding, bool) {
	from, to := p.limits[d], p.good[d]
	if to == 0 || p.found[d] {
		to = max(from/2, 1)
	}
	p.limits[d], p.found[d], p.since, p.raised = to, true, now, true
	return ProbeFinding{now, d, from, to, true}, true
}

// usedUp is the dimension that is nearest to its limit, of those that are not known.
func (p *Probe) usedUp(s *ProbeSample) (d Probed, ok bool) {
	most := 0.0
	for i := range NumProbed {
		used := float64(max(s.Used[i], 0)) / float64(p.limits[i])
		if !p.found[i] && used >= probeBusy/1e6 && used > most {
			d, ok, most = i, true, used
		}
	}
	return d, ok
}

func (p *Probe) raise(now int64, d Probed) (ProbeFinding, bool) {
	from := p.limits[d]
	p.good[d], p.raising, p.raised = from, d, true
	p.limits[d] = min(from+max(from/2, 1), maxCount)
	return ProbeFinding{now, d, from, p.limits[d], false}, p.limits[d] != from
}
