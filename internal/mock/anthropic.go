// SPDX-License-Identifier: Apache-2.0

package mock

// messagesJSON is Anthropic's message.
func messagesJSON(b text, a *answer) text {
	b = b.messageHead(a).s(`[{"type":"text","text":"`).s(words(0, a.words)).
		s(`"}],"stop_reason":"end_turn","stop_sequence":null`)
	return b.usageAnthropic(a, a.in, a.out).s(`}`)
}

func (b text) messageHead(a *answer) text {
	return b.s(`{"id":`).ident("msg_", a.id).s(`,"type":"message","role":"assistant","model":`).q(a.model).s(`,"content":`)
}

// usageAnthropic is the member "usage" with a leading comma, or nothing.
func (b text) usageAnthropic(a *answer, in, out int64) text {
	switch a.report {
	case ReportNone:
		return b
	case ReportNull:
		return b.s(`,"usage":null`)
	}
	i, o := a.report.counters(in, out)
	return b.s(`,"usage":{"input_tokens":`).n(i).
		s(`,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":`).n(o).s(`}`)
}

func countTokensJSON(b text, a *answer) text {
	return b.s(`{"input_tokens":`).n(a.in).s(`}`)
}

// event is one named event of a stream; its data repeats the name as type.
func (b text) event(name string) text {
	return b.s("event: ").s(name).s("\ndata: {\"type\":\"").s(name).s(`"`)
}

// messagesStream sends Anthropic's events. Input stands in message_start,
// output as a running total in message_delta.
func messagesStream(k *sink, a *answer) error {
	err := k.each(
		a.messageStart,
		func(b text) text {
			return b.event("content_block_start").s(`,"index":0,"content_block":{"type":"text","text":""}`)
		},
		func(b text) text { return b.event("ping") },
	)
	if err != nil {
		return err
	}
	err = k.pieces(a, func(b text, _, i int64) text {
		return b.event("content_block_delta").s(`,"index":0,"delta":{"type":"text_delta","text":"`).
			s(a.piece(i)).s("\"}}\n\n")
	})
	if err != nil {
		return err
	}
	err = k.each(
		func(b text) text { return b.event("content_block_stop").s(`,"index":0`) },
		func(b text) text {
			return b.event("message_delta").s(`,"delta":{"stop_reason":"end_turn","stop_sequence":null}`).usageAnthropic(a, a.in, a.out)
		},
	)
	if err != nil {
		return err
	}
	return k.last(k.buf[:0].event("message_stop").s("}\n\n"))
}

// messageStart reports one output token, as Anthropic does before there is any text.
func (a *answer) messageStart(b text) text {
	return b.event("message_start").s(`,"message":`).messageHead(a).
		s(`[],"stop_reason":null,"stop_sequence":null`).usageAnthropic(a, a.in, min(a.out, 1)).s(`}`)
}
