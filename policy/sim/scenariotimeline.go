// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"time"

	"github.com/weirproxy/weir/policy"
)

const askExample = "at 0s acme input 100 output 900"

// timeline reads a line of what happens: at TIME …, or every PERIOD [from TIME] for TIME ….
func (p *parser) timeline(line string) {
	a := &ask{line: p.line, text: line, n: 1, times: 1, output: -1, used: -1, takes: takesDefault, ending: policy.Complete}
	word, _ := p.next("", "")
	var ok bool
	if word == "at" {
		if a.from, ok = p.duration("the time", askExample); !ok {
			return
		}
		if p.turn(a.from) {
			return
		}
	} else if !p.period(a) {
		return
	}
	p.request(a)
}

// period reads PERIOD [from TIME] for TIME.
func (p *parser) period(a *ask) bool {
	const example = "every 100ms from 10s for 2m acme input 100 output 900"
	var ok bool
	if a.every, ok = p.duration("the period", example); !ok {
		return false
	}
	if p.take("from") {
		if a.from, ok = p.duration("the start", example); !ok {
			return false
		}
	}
	if !p.take("for") {
		p.fail("write "+example, "it does not say for how long")
		return false
	}
	length, ok := p.duration("the length", example)
	if !ok {
		return false
	}
	if a.every <= 0 || length/max(a.every, 1) > maxRequests {
		p.fail("write a longer period", "more than %d requests", maxRequests)
		return false
	}
	a.n = max(int((length+a.every-1)/a.every), 1)
	return true
}

// turn reads what happens at a time and is no request; false if it is one.
func (p *parser) turn(at time.Duration) bool {
	t := turn{line: p.line, at: at}
	switch {
	case p.take("restart"):
		t.what = restart
		p.end()
	case p.take("crash"):
		t.what = crash
		p.end()
	case p.take("change"):
		p.changed = true
		if at < p.last {
			p.fail("put the lines in order of time", "a change before one that came earlier in the text")
		}
		p.last = at
		if len(p.words) == 0 || !strings.Contains(" tenant user tool environment model output ", " "+p.words[0]+" ") {
			p.fail("write at 30s change "+limitExample, "it does not say what changes")
			return true
		}
		p.limit()
		t.spec = clone(p.now)
		p.compiles(t.spec)
	default:
		return false
	}
	p.turns = append(p.turns, t)
	p.ends = max(p.ends, at)
	return true
}

// request reads [N times] TENANT WORD VALUE ….
func (p *parser) request(a *ask) {
	if len(p.words) > 1 && p.words[1] == "times" {
		n, ok := p.count("how many", "at 0s 5 times acme")
		if !ok {
			return
		}
		p.take("times")
		a.times = int(min(n, maxRequests+1))
	}
	name, ok := p.next("who asks", askExample)
	if !ok {
		return
	}
	a.caller = policy.Caller{Environment: "production", Tenant: name, User: policy.Unknown, Tool: policy.Unknown, Vouched: true}
	for len(p.words) > 0 {
		if !p.about(a) {
			return
		}
	}
	last := a.from + time.Duration(a.n-1)*a.every
	if p.total += a.n * a.times; p.total > maxRequests || last > maxLength {
		p.fail("", "more than %d requests, or longer than 31d", maxRequests)
		return
	}
	if a.times < 1 {
		p.fail("", "0 times is never")
		return
	}
	p.asks = append(p.asks, a)
	p.ends = max(p.ends, last+a.takes)
}

// endings are the words for how a call ends.
var endings = map[string]policy.Ending{
	"complete": policy.Complete, "broken": policy.Broken, "left": policy.Left, "cut": policy.Cut, "rejected": policy.Rejected,
}

// about reads one thing that is said of a request.
func (p *parser) about(a *ask) bool {
	word, _ := p.next("", "")
	names := map[string]*string{"user": &a.caller.User, "tool": &a.caller.Tool, "environment": &a.caller.Environment, "model": &a.model}
	counts := map[string]*int64{"input": &a.input, "output": &a.output, "used": &a.used}
	var ok bool
	switch {
	case names[word] != nil:
		*names[word], ok = p.next("the "+word, word+" NAME")
	case counts[word] != nil:
		*counts[word], ok = p.count(word, word+" 100")
	case word == "takes":
		if a.takes, ok = p.duration("how long it takes", "takes 3s"); ok && a.takes > 24*time.Hour {
			p.fail("", "%v: a call takes a day at most", a.takes)
			return false
		}
	case word == "ends":
		var how string
		if how, ok = p.next("how it ends", "ends broken"); ok {
			if a.ending, ok = endings[how]; !ok {
				p.fail("write complete, broken, left, cut or rejected", "unknown ending %q", how)
			}
		}
	case word == "retry":
		a.retry, ok = true, true
	default:
		p.fail("write input, output, used, user, tool, environment, model, takes, ends or retry, such as "+askExample, "unknown word %q", word)
	}
	return ok
}
