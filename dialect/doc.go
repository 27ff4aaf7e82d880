// SPDX-License-Identifier: Apache-2.0

// Package dialect knows the JSON that providers speak: which paths are which calls, where in a request the text stands that
// costs tokens, where in an answer or stream the usage stands, and what a refusal must look like for a caller's library to
// understand it. It holds no state beyond one call and does no IO.
//
//	api := dialect.OpenAI.APIOf("POST", "/v1/chat/completions")
//	request := reader.Read(api, body, families)  // model, input tokens, declared output
//	answer.Start(api, contentType); answer.Feed(chunk) …; answer.End(); answer.Usage()
//	reply := dialect.OpenAI.Refuse(refusal)
//
// Nothing here trusts its input: a body that is no JSON, or JSON of other types than expected, gives what can be read of it.
package dialect
