// SPDX-License-Identifier: Apache-2.0

package mock

// completionJSON is OpenAI's legacy text_completion.
func completionJSON(b text, a *answer) text {
	return b.completionHead(a, "cmpl-", "text_completion").
		choices(a, `,"text":"`, `","logprobs":null,"finish_reason":"stop"}`).
		chatUsage(a).s(`}`)
}

func (b text) completionChunk(a *answer) text {
	return b.s("data: ").completionHead(a, "cmpl-", "text_completion")
}

func completionStream(k *sink, a *answer) error {
	err := k.pieces(a, func(b text, choice, i int64) text {
		return b.completionChunk(a).s(`{"index":`).n(choice).s(`,"text":"`).s(a.piece(i)).
			s(`","logprobs":null,"finish_reason":null}`).chunkEnd(a)
	})
	if err != nil {
		return err
	}
	err = k.eachChoice(a, func(b text, choice int64) text {
		return b.completionChunk(a).s(`{"index":`).n(choice).
			s(`,"text":"","logprobs":null,"finish_reason":"stop"}`).chunkEnd(a)
	})
	if err != nil {
		return err
	}
	return k.usageAndDone(a, text.completionChunk)
}
