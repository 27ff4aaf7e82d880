// SPDX-License-Identifier: Apache-2.0

// Package mock is a stand-in for an LLM provider: it speaks OpenAI's and
// Anthropic's JSON and event streams, keeps limits of its own, and keeps a
// ledger of what it let in. Tests use it as the referee: it shares no code with
// the filter it judges.
//
// # Endpoints
//
// Paths match by suffix, with or without /v1: POST …/chat/completions,
// …/responses, …/completions, …/embeddings (OpenAI), POST …/messages,
// …/messages/count_tokens (Anthropic), GET …/models. Any other path is a metered
// tool that answers {"ok":true,"path":…}. The mock's own are GET /stats
// (?events=1 adds the raw list), POST /reset, GET and POST /control, GET /healthz.
//
// # What a call costs
//
// Input is ceil(bytes of text / 4). Text is every string under messages, system,
// instructions, input, prompt and suffix, except names such as role, type, ids
// and binary data; a number there is one token, as in lists of token ids; tools,
// functions and response_format count by their raw length. Images cost nothing:
// say x-mock-input-tokens. A compressed body, or one beyond 8 MiB, counts by its
// whole length (of the latter only the first 8 MiB are read for members).
//
// Output is the declared maximum (256 where none is), times n (best_of), times
// prompts; Config.Usage takes a fraction of it. An answer holds one short word
// per output token, at most 4,096 of them, and always ends as if it were complete
// ("stop", "end_turn"), never for length.
//
// A call is charged at arrival with input plus the declared maximum, and put
// right at its end. A call cut while it streams has used what was sent; any other
// admitted call that was answered has used all its output. Refused and failed
// calls are charged nothing. models and count_tokens are free.
//
// # Headers that steer one call
//
//	x-mock-tag: NAME             label in the ledger
//	x-mock-input-tokens: N       input, whatever the text says
//	x-mock-output-tokens: N      output, also above the declared maximum
//	x-mock-latency: 200ms        before the first byte, replaces Config.Latency
//	x-mock-chunk-delay: 10ms     between content events of a stream
//	x-mock-chunks: 20            content events of a stream, for each choice
//	x-mock-status: 503           fail so, in the dialect's error shape
//	x-mock-code: NAME            error code of a failure, e.g. insufficient_quota
//	                             (with 429 if nothing says another status)
//	x-mock-retry-after: 2        sent back word for word with any failure
//	x-mock-cut: headers|middle   break the connection there
//	x-mock-usage: SPEC           as ParseUsage
//	x-mock-no-usage: 1           no usage in the answer
//	x-mock-body-bytes: N         pad the answer to N bytes
//
// An unknown or malformed x-mock- header is answered with 400, so that a typing
// error in a test does not pass unseen.
package mock
