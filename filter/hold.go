// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
)

// Many clients write the messages first and the model behind them. A body that is longer than what is read of it, and in whose
// beginning nothing says what it is to be held to, is held to its end, and walked over as it comes; Envoy has the bytes, and here is
// kept what it says in a few words. One whose beginning names a model passes on from there, and is walked over all the same:
// parsers take the last of two models.

// walkPiece is how much of a body is brought here at a time.
const walkPiece = 32 << 10

// holds walks over what has come of a body that is longer than what is read of it, and says whether more of it has to come first.
func (s *Stream) holds(end bool) bool {
	p := s.plugin.policy
	if s.outline == nil {
		if s.endpoint != noEndpoint || !s.modelInBody() && !s.plugin.bodySays {
			return false
		}
		s.outline = new(dialect.Outline)
		s.walk(0, p.Parse)
		s.walked, s.told = p.Parse, s.tells()
	}
	s.walk(s.walked, s.bytes)
	s.walked = s.bytes
	return !end && !s.told && !s.outline.Over() && max(s.bytes, s.length) <= p.Hold
}

// modelInBody says whether it is the body's model that decides.
func (s *Stream) modelInBody() bool { return s.provider.PerModel && s.call.Model == "" }

// walk takes a part of the body into the outline.
func (s *Stream) walk(from, to int64) {
	for from < to && !s.outline.Over() {
		n := min(to-from, walkPiece)
		s.outline.Feed(s.vm.host.RequestBody(int(from), int(n)))
		from += n
	}
}

// tells says whether the outline has the model and all by which the body says who asks, as far as either makes a difference.
func (s *Stream) tells() bool {
	q := s.vm.reader.OpenOutline(s.call.API, s.outline, s.familyOf)
	if s.modelInBody() && q.Model == "" {
		return false
	}
	ask := asker{host: s.vm.host, policy: s.plugin.policy, stream: s, member: s.vm.memberOf}
	if s.plugin.bodySays {
		ask.caller()
		if s.plugin.policy.Classed() {
			ask.classOf(s.path)
		}
	}
	return !ask.missed
}

// hidesModel says whether a body that was not read as a whole may name any model, and it makes a difference which.
func (s *Stream) hidesModel(q *dialect.Request, o *dialect.Outline) bool {
	return s.modelInBody() && (q.Model == "" || o != nil && o.Lost()) && !s.passesUnread()
}

// hiding says why a body does not tell its model.
func hiding(o *dialect.Outline) string {
	if o != nil && o.Lost() {
		return longModel
	}
	return hiddenModel
}

// hiddenModel tells the caller what to do about it.
const hiddenModel = "What is read of so long a body names no model, and limits depend on it: write the model before the messages, or have body.hold raised."

// follow takes a piece of a body that goes on coming after it was decided. One that then names a model with other limits is cut off,
// if it is not answered already. The provider has not got all of it, so that it costs no tokens.
func (s *Stream) follow(size int, end bool) Action {
	o := s.outline
	models := o.Models()
	s.walk(0, int64(size))
	if end || o.Over() {
		s.outline = nil // the answer may take long
	}
	if o.Models() == models && !s.loses(o) || s.status != 0 || s.holdsStill(o) {
		return s.held()
	}
	s.abandon()
	s.leave()
	s.status = 400
	s.settle(false)
	s.vm.ledger.Settle(s.vm.host.Now(), &s.reservation, policy.Cost{}) // what it held while it waited
	if o.Lost() {
		return s.refuse(policy.UnreadableBody, longModel)
	}
	return s.refuse(policy.UnreadableBody, "The body names two models with different limits.")
}

// longModel is for who writes more into what decides than is kept of it.
const longModel = "What the body says of its model and of numbers is too long to be read."

// loses says whether it matters that something which decides may be missing.
func (s *Stream) loses(o *dialect.Outline) bool { return o.Lost() && !s.passesUnread() }

// holdsStill says whether a body may name all the models that it does by now, and be held to what it was.
func (s *Stream) holdsStill(o *dialect.Outline) bool {
	q := s.vm.reader.OpenOutline(s.call.API, o, s.familyOf)
	if s.loses(o) || !s.oneModel(&q) {
		return false
	}
	m, _ := s.provider.Models.Lookup(q.Model)
	return m == s.limited && s.plugin.policy.Rating(q.Model) == s.rating
}
