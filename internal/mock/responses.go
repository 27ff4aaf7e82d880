// SPDX-License-Identifier: Apache-2.0

package mock

const responsesDetails = `,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}`

// responsesJSON is OpenAI's response.
func responsesJSON(b text, a *answer) text {
	return b.response(a, "completed")
}

// response is the object as it stands before (in_progress) and after its output.
func (b text) response(a *answer, status string) text {
	b = b.s(`{"id":`).ident("resp_", a.id).s(`,"object":"response","created_at":`).n(a.created).
		s(`,"status":"`).s(status).s(`","error":null,"incomplete_details":null,"instructions":null,`).
		s(`"max_output_tokens":null,"model":`).q(a.model).s(`,"output":[`)
	if status == "completed" {
		b = b.responseItem(a, status, true)
	}
	b = b.s(`],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},` +
		`"store":false,"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],` +
		`"top_p":1.0,"truncation":"disabled","user":null,"metadata":{}`)
	if status != "completed" {
		return b.s(`,"usage":null}`)
	}
	return b.usage(a, "input_tokens", "output_tokens", responsesDetails).s(`}`)
}

// responseItem is the one message of the output, with or without its content.
func (b text) responseItem(a *answer, status string, content bool) text {
	b = b.s(`{"id":`).ident("msg_", a.id).s(`,"type":"message","status":"`).s(status).s(`","role":"assistant","content":[`)
	if content {
		b = b.responsePart(words(0, a.words))
	}
	return b.s(`]}`)
}

func (b text) responsePart(content string) text {
	return b.s(`{"type":"output_text","annotations":[],"logprobs":[],"text":"`).s(content).s(`"}`)
}

// responseEvents numbers the events of one stream.
type responseEvents struct {
	a    *answer
	next int64
}

func (e *responseEvents) head(b text, name string) text {
	b = b.s("event: ").s(name).s("\ndata: {\"type\":\"").s(name).s(`","sequence_number":`).n(e.next)
	e.next++
	return b
}

// inPart names the place that an event of the text is about.
func (e *responseEvents) inPart(b text) text {
	return b.s(`,"item_id":`).ident("msg_", e.a.id).s(`,"output_index":0,"content_index":0`)
}

// responsesStream sends named, numbered events; there is no [DONE].
func responsesStream(k *sink, a *answer) error {
	e := &responseEvents{a: a}
	if err := k.each(e.created, e.inProgress, e.itemAdded, e.partAdded); err != nil {
		return err
	}
	err := k.pieces(a, func(b text, _, i int64) text {
		return e.inPart(e.head(b, "response.output_text.delta")).
			s(`,"delta":"`).s(a.piece(i)).s(`","logprobs":[]`).s("}\n\n")
	})
	if err != nil {
		return err
	}
	if err := k.each(e.textDone, e.partDone, e.itemDone); err != nil {
		return err
	}
	return k.last(e.completed(k.buf[:0]).s("}\n\n"))
}
