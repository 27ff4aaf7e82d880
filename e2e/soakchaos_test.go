// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// A fault begins, is there for a while, and ends.
type fault struct {
	name       string
	begin, end func()
	length     time.Duration
}

func (s *soak) faults() []fault {
	stop := func(p *os.Process) { _ = p.Signal(syscall.SIGSTOP) }
	resume := func(p *os.Process) { _ = p.Signal(syscall.SIGCONT) }
	moves := 0
	return []fault{
		{"the policy moves", func() { moves++; s.push(soakMoves[moves%len(soakMoves)], "", true) }, func() {}, 6 * time.Second},
		{"the policy moves three times at once", func() {
			for range 3 {
				moves++
				s.push(soakMoves[moves%len(soakMoves)], "", false)
				time.Sleep(300 * time.Millisecond)
			}
		}, func() { s.push(soakMoves[moves%len(soakMoves)], "", true) }, time.Second},
		{"the policy is broken", func() { s.push(s.inForce[len(s.inForce)-1].tpm, "limits: [\n", false) }, func() { s.push(s.inForce[len(s.inForce)-1].tpm, "", true) }, 3 * time.Second},
		{"the control plane is killed", func() { s.serve.kill() }, func() { s.control() }, 4 * time.Second},
		{"the control plane stands still", func() { stop(s.serve.cmd.Process) }, func() { resume(s.serve.cmd.Process) }, 7 * time.Second},
		{"Redis stands still", func() { stop(s.redis) }, func() { resume(s.redis) }, 7 * time.Second},
		{"reports are lost", func() { s.reports.closed.Store(true) }, func() { s.reports.closed.Store(false) }, 6 * time.Second},
		{"the provider stands still", func() { stop(s.mock.cmd.Process) }, func() { resume(s.mock.cmd.Process) }, 3 * time.Second},
		{"Envoy stands still", func() { stop(s.envoyProc) }, func() { resume(s.envoyProc) }, 2 * time.Second},
		{"the provider refuses", func() { s.storm.Store(true) }, func() { s.storm.Store(false) }, 8 * time.Second},
	}
}

// chaos lets one thing after another fail, in an order that is another in each round.
func (s *soak) chaos(r *rand.Rand, end time.Time) {
	faults := s.faults()
	for time.Now().Before(end) {
		for _, i := range r.Perm(len(faults)) {
			f := faults[i]
			if time.Until(end) < f.length {
				break
			}
			s.t.Logf("%s", f.name)
			f.begin()
			time.Sleep(f.length)
			f.end()
			time.Sleep(time.Duration(1000+r.IntN(3000)) * time.Millisecond)
		}
		if time.Until(end) < 10*time.Second {
			return
		}
	}
}
