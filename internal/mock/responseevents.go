// SPDX-License-Identifier: Apache-2.0

package mock

// The events around the text of a response, in the order of a stream.

func (e *responseEvents) created(b text) text {
	return e.head(b, "response.created").s(`,"response":`).response(e.a, "in_progress")
}

func (e *responseEvents) inProgress(b text) text {
	return e.head(b, "response.in_progress").s(`,"response":`).response(e.a, "in_progress")
}

func (e *responseEvents) itemAdded(b text) text {
	return e.head(b, "response.output_item.added").s(`,"output_index":0,"item":`).
		responseItem(e.a, "in_progress", false)
}

func (e *responseEvents) partAdded(b text) text {
	return e.inPart(e.head(b, "response.content_part.added")).s(`,"part":`).responsePart("")
}

func (e *responseEvents) textDone(b text) text {
	return e.inPart(e.head(b, "response.output_text.done")).
		s(`,"text":"`).s(words(0, e.a.words)).s(`","logprobs":[]`)
}

func (e *responseEvents) partDone(b text) text {
	return e.inPart(e.head(b, "response.content_part.done")).s(`,"part":`).responsePart(words(0, e.a.words))
}

func (e *responseEvents) itemDone(b text) text {
	return e.head(b, "response.output_item.done").s(`,"output_index":0,"item":`).
		responseItem(e.a, "completed", true)
}

func (e *responseEvents) completed(b text) text {
	return e.head(b, "response.completed").s(`,"response":`).response(e.a, "completed")
}
