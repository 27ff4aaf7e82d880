// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"time"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/fleet"
)

const (
	postTimeout = time.Second

	// postRate bounds the messages of an Envoy, a second and at once.
	postRate  = 4.0
	postBurst = 6.0
	postSpare = 3.0         // what only calls wait for leaves so many to what moves shares, and goes along with that
	postGap   = int64(20e6) // between two, so that what comes together goes together
)

// report tells the controller what there is to tell.
func (m *member) report(now int64) {
	if m.open && now-m.posted < int64(2*postTimeout) {
		return
	}
	due := m.ack || m.hello || m.fresh || m.node.Due(now)
	if !due && !m.urgent || now-m.posted < postGap || !m.mayPost(now, due) {
		return
	}
	msg := fleet.FromNode{Node: m.node.Name(), Incarnation: m.state.incarnation}
	if due {
		ackOnly := m.ack && !m.hello
		if r := m.node.Report(now, ackOnly); len(r.Holdings) > 0 || m.hello {
			msg.Report = &r
		}
		m.ack, m.fresh = false, false
	}
	if due {
		m.lessons(now, &msg)
	}
	sent := map[string]offered{}
	for name, q := range m.quotas {
		m.tell(now, &msg, name, q, due)
		if q.seen != (offered{}) {
			sent[name], q.seen = q.seen, offered{}
		}
	}
	m.urgent = false
	goes := msg.Report != nil || len(msg.Asks)+len(msg.Draws)+len(msg.Seen)+len(msg.Ratios)+len(msg.Learned) > 0
	if !due && !goes { // what only people want to know is no reason for a message
		return
	}
	told := m.tellHeadcounts(now, &msg)
	if goes || len(msg.Denials)+len(msg.Waits) > 0 {
		m.send(now, &msg, sent, told)
	}
}

// mayPost keeps the messages within their rate.
func (m *member) mayPost(now int64, due bool) bool {
	m.posts = min(postBurst, m.posts+float64(now-m.counted)/1e9*postRate)
	m.counted = now
	return m.posts >= postSpare || due && m.posts >= 1
}

// tell adds to a message what there is to say of a quota.
func (m *member) tell(now int64, msg *fleet.FromNode, name string, q *quota, due bool) {
	whole := due && q.countWhole(m.vm, now)
	if whole && (q.counts > 0 || q.counted) || q.seen != (offered{}) || q.waiting > 0 || q.queued {
		seen := fleet.Seen{
			Key: name, Epoch: m.vm.epochs[name], Denied: q.seen.denied, Queued: q.waiting, Sent: q.seen.sent,
			Answered: q.seen.answered, Rejected: q.seen.rejected, Whole: whole, Used: q.counts,
		}
		for class, n := range q.seen.others {
			if n > 0 {
				seen.Others = append(seen.Others, fleet.Refused{Class: uint8(class), Calls: n})
			}
		}
		msg.Seen = append(msg.Seen, seen)
		q.queued, q.counted = q.waiting > 0, q.counts > 0
	}
	if q.credit != nil {
		have := int64(0)
		if held, _ := q.credit.Held(now); held > 0 {
			q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
				have = sm.Have(now)
				return false
			})
		}
		if a := q.credit.Message(now, q.waiting-have); a != nil {
			msg.Asks = append(msg.Asks, *a)
		}
	}
	if q.drawer != nil {
		m.draw(now, msg, q)
	}
}

// countWhole counts what counts of a limit that is not shared, if anything does.
func (q *quota) countWhole(v *VM, now int64) (counts bool) {
	if q.share != nil || q.drawer != nil {
		return false
	}
	q.each(v, now, func(sm *policy.SharedMeter) bool {
		q.counts, counts = sm.Counted(now)
		return false
	})
	return counts
}

// draw adds a draw, if there is anything to say: that somebody waits, or that more has been used or given back since the last.
func (m *member) draw(now int64, msg *fleet.FromNode, q *quota) {
	var is [3]int64
	q.each(m.vm, now, func(sm *policy.SharedMeter) bool {
		changed := sm.GiveBack(now)
		is = [3]int64{sm.Given(), sm.Used(), sm.Returned()}
		return changed
	})
	if q.want == 0 && (is == q.said || now-q.drew < int64(m.params.Report)) {
		return
	}
	q.drew, q.said = now, is
	d := q.drawer.Draw(now, is[0], is[1], is[2], q.want)
	q.asked, q.askedFor = d.Number, d.Want
	msg.Draws = append(msg.Draws, *d)
}

// send posts a message. What was counted comes again with the next, if it does not arrive, and so does the answer to a hello.
func (m *member) send(now int64, msg *fleet.FromNode, sent map[string]offered, told headcounts) {
	m.state.message++
	msg.Number = m.state.message
	m.state.epoch, m.state.number = m.node.Numbers()
	m.posts, m.posted, m.open = m.posts-1, now, true
	number, hello := msg.Number, m.hello
	m.hello = false
	if !m.vm.host.Post(fleet.ControlCluster, fleet.ReportPath, fleet.ReportType, msg.Encode(), postTimeout, func(status int, body []byte) {
		m.answered(number, status, body, sent, told, hello)
	}) {
		m.answered(number, 0, nil, sent, told, hello)
	}
}

// answered takes what a message was answered with; status is 0 if it was not.
func (m *member) answered(number uint64, status int, body []byte, sent map[string]offered, told headcounts, hello bool) {
	defer m.vm.guard("report_answer")
	if number == m.state.message {
		m.open = false
	}
	m.vm.countReport(status)
	if status/100 != 2 {
		m.hello = m.hello || hello
		for name, was := range sent {
			if q := m.quotas[name]; q != nil {
				q.seen.add(&was)
			}
		}
		for i := range told {
			m.headcounts.add(&told[i], maxCounted)
		}
		return
	}
	m.heard = m.vm.host.Now()
	if len(body) == 0 {
		return
	}
	if h, err := fleet.DecodeHello(body); err == nil {
		m.greet(h)
	}
}

// greet takes note of another controller.
func (m *member) greet(h fleet.Hello) {
	if m.node.Hello(h) {
		m.hello = true
		m.state.epoch, m.state.number = m.node.Numbers()
	}
}
