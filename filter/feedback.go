// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/policy/feedback"
)

// maxRefusal is how much of the body of a refusal is read.
const maxRefusal = 4 << 10

// hear takes the headers of an answer: what they tell of limits, and how long a refusal asks to be left alone. That holds at
// once; what else a refusal means is in its body.
func (s *Stream) hear(headers [][2]string) {
	if s.pool == nil {
		return
	}
	r := feedback.Reply{Status: s.status, Headers: headers}
	learns := s.vm.ticked-s.pool.learned >= int64(time.Second) // the last tick's time will do, and needs no call
	if !learns && s.status < 400 {
		return
	}
	now := s.vm.host.Now()
	if learns {
		s.pool.learned = s.vm.ticked
		r.Wall = s.vm.host.Wall()
		s.pool.learn(s.vm, now, r)
	}
	if s.status < 400 {
		return
	}
	if s.refusal = keep(headers); s.attempts.status == s.status { // heard of it as an attempt
		s.heard = s.attempts.verdict
		return
	}
	r.Wall = s.vm.host.Wall()
	if s.heard = feedback.Classify(r); s.heard.Told {
		s.pool.refused(s.vm, now, s.reservation.At(), s.heard, false)
	}
}

// keep copies the headers of an answer, which are the callback's.
func keep(headers [][2]string) [][2]string {
	kept := make([][2]string, len(headers))
	for i, h := range headers {
		kept[i] = [2]string{strings.Clone(h[0]), strings.Clone(h[1])}
	}
	return kept
}

// hearBody takes a chunk of the body of a refusal.
func (s *Stream) hearBody(size int) {
	if left := maxRefusal - len(s.refusalBody); left > 0 && size > 0 {
		s.refusalBody = append(s.refusalBody, s.vm.host.ResponseBody(min(size, left))...)
	}
}

// heed does what follows from an answer that has come to its end.
func (s *Stream) heed() {
	defer s.vm.guard("heed") // the call is settled in any case
	body := s.refusalBody
	if s.refusal == nil {
		body = s.answer.Refusal()
	}
	if s.pool == nil || s.refusal == nil && body == nil {
		return
	}
	now := s.vm.host.Now()
	v := feedback.Classify(feedback.Reply{Status: s.status, Headers: s.refusal, Body: body, Wall: s.vm.host.Wall()})
	s.vm.countRefusal(v.Class)
	is := v
	if v.Told && s.heard.Told && v.Wait == s.heard.Wait {
		v.Told, v.Wait = v.Class == feedback.Exhausted, 0 // it is closed for that already
	}
	s.pool.refused(s.vm, now, s.reservation.At(), v, true)
	s.heard, s.refusal, s.refusalBody = is, nil, nil
}

// learn shows what a provider tells of its limits, once.
func (p *pool) learn(v *VM, now int64, r feedback.Reply) {
	for _, f := range p.learner.Take(nil, now, r, nil) {
		is, fresh := knownLimit{f.Dimension, f.To}, false
		p.change(v, now, func(st *gateState) {
			fresh = false
			for i := range st.limits {
				switch l := &st.limits[i]; {
				case *l == is:
					return
				case l.dimension == is.dimension, l.limit == 0:
					*l, fresh = is, true
					return
				}
			}
		})
		if fresh {
			v.host.Log(Info, "weir: provider "+p.name+": it says that its limit is "+strconv.FormatInt(f.To, 10)+" "+f.Dimension.String())
		}
	}
}
