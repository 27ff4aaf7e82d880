// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strconv"
	"time"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// tellBudget says what is left for the caller's own tree, user and tenant. Whose key names its tenant says with ?provider=NAME in
// which provider's way it is sent.
func (s *Stream) tellBudget() Action {
	p := s.plugin.policy
	if name := parameter(s.path, "provider"); name != "" {
		if s.provider = s.plugin.providerNamed(name, false); s.provider == nil {
			return s.problem(400, "bad_request", "provider", "Name one of the policy's providers.")
		}
		s.dialect = s.plugin.providers[s.provider]
	}
	ask := asker{host: s.vm.host, policy: p, stream: s}
	c := ask.named()
	var path policy.Path
	p.Path(&path, nil, &c)
	out := s.vm.ledger.Outlook(s.vm.host.Now(), p, &path)
	var o object
	o.word("mode", p.Mode.String())
	o.word("tenant", c.Tenant)
	o.word("user", c.User)
	if c.Tree != "" {
		o.word("tree", c.Tree)
	}
	list := object("[")
	for _, h := range sentences(&out) {
		list.put(dialect.Quote(h))
	}
	o.raw("hints", string(list)+"]")
	o.raw("left", remainders(out.Left))
	o.raw("cooling", coolings(out.Cooling))
	o.close("}")
	return s.tell(200, policy.Admit, o)
}

func remainders(left []policy.Remainder) string {
	list := object("[")
	for i := range left {
		l := &left[i]
		list.element()
		list.word("tier", l.Tier.String())
		list.word("counts", counted(l.Dimension))
		list.raw("left", amountOf(l.Dimension, l.Units))
		list.raw("limit", amountOf(l.Dimension, l.Limit))
		if l.Window > 0 {
			list.number("window_s", seconds64(l.Window))
		}
		if l.More > 0 {
			list.number("more_in_s", seconds64(l.More))
		}
		list.close("}")
	}
	return string(list) + "]"
}

func coolings(tools []policy.Cooling) string {
	list := object("[")
	for _, t := range tools {
		list.element()
		list.word("tool", t.Tool)
		list.number("seconds", seconds64(t.Wait))
		list.close("}")
	}
	return string(list) + "]"
}

// counted is what a dimension counts, in plain words.
func counted(d policy.Dimension) string {
	if d == policy.InFlight {
		return "parallel_calls"
	}
	return [...]string{
		policy.Requests: "calls", policy.Tokens: "tokens", policy.InputTokens: "input_tokens", policy.OutputTokens: "output_tokens",
		policy.Retries: "retries", policy.Spend: "usd",
	}[d.Unit()]
}

func amountOf(d policy.Dimension, n int64) string {
	if d.Unit() == policy.Spend {
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
	}
	return strconv.FormatInt(n, 10)
}

// seconds64 is a time in whole seconds, rounded up.
func seconds64(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
