// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/filter/inflate"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policy/tokens"
)

// decideBody decides on a body that is complete, or of which as much is buffered as is read. It goes by what the body is,
// whatever its headers say: providers do.
func (s *Stream) decideBody(complete bool) Action {
	if s.endpoint != noEndpoint {
		return s.readEndpoint()
	}
	r := &s.vm.reader
	s.partial = !complete
	if s.bytes == 0 {
		return s.decide(dialect.Request{}, nil)
	}
	size := max(s.length, s.bytes)
	part := s.vm.host.RequestBody(0, int(min(s.bytes, s.plugin.policy.Parse)))
	whole := complete && s.bytes <= s.plugin.policy.Parse
	o := s.outline
	if encoding := s.header("content-encoding"); inflate.Encoded(encoding) {
		packed := new(dialect.Outline)
		if body, ok := inflate.Unpack(encoding, part, size, s.plugin.policy.Parse, packed.Feed); ok {
			part, whole, size, o = body.Plain, whole && body.Whole, body.Length, packed
			s.bytes = max(s.bytes, int64(len(part)))
		}
	}
	var q dialect.Request
	var ok bool
	if whole {
		q, ok = r.Open(s.call.API, part, s.familyOf)
	} else {
		q, ok = r.OpenPart(s.call.API, part, o, size, s.familyOf)
	}
	if ok && s.call.Model == "" && !s.oneModel(&q) && s.plugin.policy.Mode != policy.Shadow {
		return s.refuse(policy.UnreadableBody, "")
	}
	if ok && !whole && s.hidesModel(&q, o) {
		return s.refuse(policy.UnreadableBody, hiding(o))
	}
	if complete || q.Model == "" || !s.modelInBody() || s.plugin.policy.Mode == policy.Shadow {
		s.outline = nil // nothing that comes makes a difference
	}
	if ok {
		s.asks = whole && s.mayAsk(&q)
		q.IncludeUsage = q.IncludeUsage || s.asks
		return s.decide(q, s.vm.memberOf)
	}
	if inflate.Unknown(s.header("content-encoding")) {
		s.bytes *= inflate.UnknownFactor
		return s.decide(dialect.ByLength(size*inflate.UnknownFactor), nil)
	}
	if !s.passesUnread() {
		return s.refuse(policy.UnreadableBody, "")
	}
	return s.decide(dialect.ByLength(size), nil)
}

// oneModel says whether it is clear whose limits and prices are the request's, though its body may name several models. One with
// limits comes before one without.
func (s *Stream) oneModel(q *dialect.Request) bool {
	p, models := s.plugin.policy, &s.provider.Models
	is, limited := models.Lookup(q.Model)
	for _, name := range s.vm.reader.OtherModels() {
		if name == "" || name == q.Model {
			continue
		}
		other, ok := models.Lookup(name)
		switch {
		case p.Rating(name) != p.Rating(q.Model), ok && limited && other != is:
			return false
		case ok && !limited:
			q.Model, is, limited = name, other, true
		}
	}
	return true
}

// family gives the tokenizer of the model that the body names, or else the path.
func (s *Stream) family(model string) tokens.Family {
	if model == "" {
		model = s.call.Model
	}
	return s.plugin.family(model)
}

// passesUnread says whether a body passes from which nothing can be told.
func (s *Stream) passesUnread() bool {
	p := s.plugin.policy
	return p.FailOpen || p.Mode == policy.Shadow || s.unmetered
}

// decide reserves what the request costs, or refuses it. member reads the body, if it was opened.
func (s *Stream) decide(q dialect.Request, member func(string) string) Action {
	p := s.plugin.policy
	ask := asker{host: s.vm.host, policy: p, stream: s, member: member}
	caller := ask.caller()
	s.heedPath(&q)
	model, _ := s.provider.Models.Lookup(q.Model)
	s.limited = model
	s.noteCap(model, &q)
	s.rating = p.Rating(q.Model)
	if s.logs() {
		s.logged.model = strings.Clone(q.Model) // it lies in the body's memory
		s.noteCaller(&ask)
	}
	var path policy.Path
	p.Path(&path, s.gated(model), &caller)
	s.meets(&path)
	if p.Classed() {
		s.classIndex, s.class = ask.classOf(s.path)
		path.Part = s.plugin.part(model, s.classIndex)
	}
	s.prepare(q.Model, caller.Tenant)
	if s.repeat {
		s.vm.countRepeat()
	}
	now := s.vm.host.Now()
	others := s.others(now, model)
	if a, ok := s.afterRetries(now, &path, &caller); ok {
		return a
	}
	s.prepareHint(now, &ask, &path, &q)
	if q.How == dialect.Bound {
		if plain := !others && len(path.Central) == 0 && s.hinted.text == "" && !s.branch && !s.asksWhy(); plain && s.reliesOnUsage(&q) && s.vm.ledger.ReserveAmple(now, &path, s.cost(&path, model, &q), &s.reservation) {
			s.vm.countAdmitted()
			s.countAmple(now)
			return s.send(q)
		}
		q = s.vm.reader.Count()
	}
	s.calibrate(now, &q)
	cost := s.cost(&path, model, &q)
	s.explain(now, &path, &q, &cost)
	s.tellWatch(&ask, model, &path, &q, &cost)
	if s.branch && s.join(now, &ask, &path, cost) {
		return s.goes(now, &path, model, &q, &caller)
	}
	if others {
		return s.stand(now, model, s.waits(path, cost, q, caller))
	}
	d := s.reserve(now, &path, model, &q, cost)
	s.noteShadow(&d)
	if d.Verdict == policy.Deny {
		if len(s.vm.ledger.Lacks()) > 0 || s.class.OnLimit == policy.OnLimitQueue && mayWait(d.Refusal.Reason) {
			w := s.waits(path, cost, q, caller)
			w.lack(now, s.vm)
			w.refusal = d.Refusal
			return s.stand(now, model, w)
		}
		s.offer(&path, &cost, true)
		return s.deny(&d.Refusal, &caller)
	}
	return s.goes(now, &path, model, &q, &caller)
}

// goes lets a request go that the limits held here admit, if the central ones do, too.
func (s *Stream) goes(now int64, path *policy.Path, m *policy.Model, q *dialect.Request, c *policy.Caller) Action {
	if len(path.Central) > 0 {
		return s.goOn(now, &waiter{path: *path, request: *q, caller: *c, model: m})
	}
	s.vm.countAdmitted()
	return s.send(*q)
}

// heedPath puts what the path says in place of what the body says.
func (s *Stream) heedPath(q *dialect.Request) {
	if s.call.Model != "" {
		q.Model = s.call.Model
	}
	q.Stream = q.Stream || s.call.Stream
}

// noteShadow counts a refusal that was none, for its limit only watches.
func (s *Stream) noteShadow(d *policy.Decision) {
	if d.Shadow.Reason != policy.None {
		s.countDecision(policy.Deny, metricShadow, &d.Shadow)
		s.logged.shadow = d.Shadow
	}
}

// waits is what is needed to try the request again.
func (s *Stream) waits(path policy.Path, cost policy.Cost, q dialect.Request, c policy.Caller) *waiter {
	q.Model = ""       // it lies in the body's memory
	s.hinted.text = "" // it would not be true any more
	return &waiter{path: path, cost: cost, request: q, caller: c}
}

// deny refuses a request for a limit.
func (s *Stream) deny(r *policy.Refusal, c *policy.Caller) Action {
	if a, ok := s.instead(r, c); ok {
		return a
	}
	return s.turnDown(r, unnamed(c, r.Tier))
}

// turnDown counts a refusal for a limit, and answers with it.
func (s *Stream) turnDown(r *policy.Refusal, detail string) Action {
	s.countDecision(policy.Deny, metricRequests, r)
	s.noteDenied(r)
	return s.reply(r, detail)
}

// unnamed tells a caller that its limit is the one of all who are not known: else it would look in vain for its own.
func unnamed(c *policy.Caller, t policy.Tier) string {
	if c.Key(t) != policy.Unknown {
		return ""
	}
	return "Who does not name its " + t.String() + ", or is not trusted to, shares this limit with all others of that kind."
}

// send lets a request go that was admitted.
func (s *Stream) send(q dialect.Request) Action {
	q.Model = "" // it lies in the body's memory, which must not outlive this callback
	s.request = q
	s.offer(s.reservation.Path(), &s.reservation.Cost, false)
	s.rates = s.vm.rates
	s.issueTicket()
	s.rewrite()
	return s.admit(sent)
}

// admit lets the request go, without what must not leave.
func (s *Stream) admit(as phase) Action {
	s.phase = as
	h := s.vm.host
	if max(s.bytes, s.length) > s.plugin.policy.Parse {
		h.SetProperty(policy.LongState, "1")
		h.SetRequestHeader(":path", s.path) // Envoy chooses the route anew, by that
	}
	for i, name := range s.plugin.identity {
		if s.identity&(1<<i) != 0 {
			h.RemoveRequestHeader(name)
		}
	}
	for _, kv := range s.headers {
		switch {
		case strings.HasPrefix(kv[0], "x-weir-"), strings.HasPrefix(kv[0], "x-envoy-"):
			// With x-envoy-retry-on a caller would make Envoy send what was admitted once several times.
			h.RemoveRequestHeader(kv[0])
		case kv[0] == baggageHeader && s.plugin.baggage, strings.IndexByte(kv[0], '_') >= 0 && s.plugin.disguised(kv[0]):
			h.RemoveRequestHeader(kv[0])
		case kv[0] == "accept-encoding" && s.call.API.Metered() && !s.signs("accept-encoding"):
			h.SetRequestHeader("accept-encoding", "identity") // the answer's usage must be readable
		}
	}
	s.dropHeaders()
	s.path, s.call.Model = "", ""
	return Continue
}
