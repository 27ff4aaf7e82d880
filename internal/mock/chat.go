// SPDX-License-Identifier: Apache-2.0

package mock

const chatDetails = `,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":` +
	`{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}`

func (b text) chatUsage(a *answer) text {
	return b.usage(a, "prompt_tokens", "completion_tokens", chatDetails)
}

// completionHead is what chat and legacy completions begin with.
func (b text) completionHead(a *answer, prefix, object string) text {
	return b.s(`{"id":`).ident(prefix, a.id).s(`,"object":"`).s(object).s(`","created":`).n(a.created).
		s(`,"model":`).q(a.model).s(`,"system_fingerprint":"fp_mock","choices":[`)
}

// choices writes one choice after the other.
func (b text) choices(a *answer, before, after string) text {
	for i := range a.choices {
		if i > 0 {
			b = b.s(",")
		}
		b = b.s(`{"index":`).n(i).s(before).s(words(0, a.words)).s(after)
	}
	return b.s(`]`)
}

// chatJSON is OpenAI's chat.completion.
func chatJSON(b text, a *answer) text {
	return b.completionHead(a, "chatcmpl-", "chat.completion").
		choices(a, `,"message":{"role":"assistant","content":"`,
			`","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}`).
		chatUsage(a).s(`,"service_tier":"default"}`)
}

func (b text) chatChunk(a *answer) text {
	return b.s("data: ").completionHead(a, "chatcmpl-", "chat.completion.chunk")
}

// chunkEnd closes a chunk. When usage was asked for, every chunk has the member.
func (b text) chunkEnd(a *answer) text {
	b = b.s("]")
	if a.includeUsage && a.report != ReportNone {
		b = b.s(`,"usage":null`)
	}
	return b.s("}\n\n")
}

// chatStream sends the roles, the pieces, the finishes, then usage and [DONE].
func chatStream(k *sink, a *answer) error {
	err := k.eachChoice(a, func(b text, choice int64) text {
		return b.chatChunk(a).s(`{"index":`).n(choice).
			s(`,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`).chunkEnd(a)
	})
	if err != nil {
		return err
	}
	err = k.pieces(a, func(b text, choice, i int64) text {
		return b.chatChunk(a).s(`{"index":`).n(choice).s(`,"delta":{"content":"`).s(a.piece(i)).
			s(`"},"logprobs":null,"finish_reason":null}`).chunkEnd(a)
	})
	if err != nil {
		return err
	}
	err = k.eachChoice(a, func(b text, choice int64) text {
		return b.chatChunk(a).s(`{"index":`).n(choice).
			s(`,"delta":{},"logprobs":null,"finish_reason":"stop"}`).chunkEnd(a)
	})
	if err != nil {
		return err
	}
	return k.usageAndDone(a, text.chatChunk)
}

// usageAndDone ends an OpenAI stream of chunks.
func (k *sink) usageAndDone(a *answer, chunk func(text, *answer) text) error {
	if a.includeUsage && a.report != ReportNone {
		if err := k.send(chunk(k.buf[:0], a).s("]").chatUsage(a).s("}\n\n")); err != nil {
			return err
		}
	}
	return k.last(k.buf[:0].s("data: [DONE]\n\n"))
}

func (k *sink) eachChoice(a *answer, event func(b text, choice int64) text) error {
	for i := range a.choices {
		if err := k.send(event(k.buf[:0], i)); err != nil {
			return err
		}
	}
	return nil
}
