// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// Hints tell a planner, or the model itself, what it may still do. They are made of fixed sentences, numbers, and names of tools
// that the policy has; nothing of any request is in them. There are none unless little is left.

// maxSentences bounds a hint.
const maxSentences = 8

// sentences say what a caller should know.
func sentences(o *policy.Outlook) (list []string) {
	for i := range o.Left {
		if o.Left[i].Little {
			list = append(list, sentence(&o.Left[i]))
		}
	}
	for _, t := range o.Cooling {
		list = append(list, "The tool "+t.Tool+" is cooling down: do not use it for "+inWords(t.Wait)+".")
	}
	return list[:min(len(list), maxSentences)]
}

// sentence says that little is left of something.
func sentence(l *policy.Remainder) string {
	whose := " for this " + l.Tier.String()
	if l.Tier == policy.TierTree {
		whose = " for this request tree"
	}
	if l.Dimension == policy.InFlight {
		if l.Units == 0 {
			return "No more calls may run in parallel" + whose + " now: wait until one has ended."
		}
		return several(l.Units, "more call") + " may run in parallel" + whose + " now."
	}
	what := several(l.Units, unitNames[l.Dimension.Unit()])
	if l.Dimension.Unit() == policy.Spend {
		what = "$" + amountOf(l.Dimension, l.Units)
	}
	what += " left" + whose
	switch {
	case l.Dimension == policy.TreeRetries:
		return what + " in all: do not repeat a call unless it must be."
	case l.Dimension == policy.TreeCalls:
		return what + " in all: send only those that matter."
	case l.Window == 0:
		return what + " in all: keep prompts and answers short."
	case l.More > 0:
		return what + " now, more in " + inWords(l.More) + ": wait, or ask for less."
	}
	return what + " now: ask for less."
}

var unitNames = [...]string{
	policy.Requests: "call", policy.Tokens: "token", policy.InputTokens: "token of input", policy.OutputTokens: "token of output",
	policy.Retries: "retry",
}

// several is a number and a noun.
func several(n int64, noun string) string {
	head, tail, _ := strings.Cut(noun, " of ")
	if tail != "" {
		tail = " of " + tail
	}
	switch {
	case n == 1:
	case strings.HasSuffix(head, "y"):
		head = head[:len(head)-1] + "ies"
	default:
		head += "s"
	}
	return strconv.FormatInt(n, 10) + " " + head + tail
}

// inWords is a time, rounded up.
func inWords(d time.Duration) string {
	switch s := seconds64(d); {
	case s <= 120:
		return several(s, "second")
	case s <= 7200:
		return several((s+59)/60, "minute")
	default:
		return several((s+3599)/3600, "hour")
	}
}

// hinted is what a stream has of hints.
type hinted struct {
	text   string // that goes into its body
	tokens int64  // that it costs
	edits  bool   // the body has to be looked at: a hint goes in, or an earlier one comes out
}

// prepareHint finds what a request is to be told, if its body may be changed, it belongs to a tree, is no branch of a fan-out, and
// the policy wants it.
func (s *Stream) prepareHint(now int64, a *asker, path *policy.Path, q *dialect.Request) {
	if !s.plugin.policy.Hints.Inject || a.member == nil || q.How == dialect.Length || !s.dialect.TakesHint(s.call.API, q.Family) ||
		!s.rewritable() || s.branch || a.named().Tree == "" {
		return
	}
	h := &s.hinted
	o := s.vm.ledger.Outlook(now, s.plugin.policy, path)
	h.text = strings.Join(sentences(&o), " ")
	h.edits = h.text != "" || s.vm.reader.Hinted()
	if h.text != "" {
		h.tokens = s.vm.reader.CountHint(q.Family, h.text)
	}
}

// reserve takes what the request costs with its hint; or without, and without the hint, where only that is too much.
func (s *Stream) reserve(now int64, path *policy.Path, m *policy.Model, q *dialect.Request, cost policy.Cost) policy.Decision {
	if h := &s.hinted; h.text != "" {
		with := *q
		with.Input += h.tokens
		if d := s.vm.ledger.Reserve(now, path, s.cost(path, m, &with), &s.reservation); d.Verdict == policy.Admit {
			*q = with
			s.lesson.add(h.tokens)
			return d
		}
		h.text = ""
	}
	return s.vm.ledger.Reserve(now, path, cost, &s.reservation)
}

// sayHint puts what is left now into a header of the answer.
func (s *Stream) sayHint() {
	if !s.plugin.policy.Hints.Header {
		return
	}
	o := s.vm.ledger.Outlook(s.vm.host.Now(), s.plugin.policy, s.reservation.Path())
	if text := strings.Join(sentences(&o), " "); text != "" {
		s.vm.host.SetResponseHeader("x-weir-hint", text)
	}
}
