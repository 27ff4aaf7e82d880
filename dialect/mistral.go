// SPDX-License-Identifier: Apache-2.0

package dialect

// mistralSpeech is OpenAI's, and a completion that fills in the middle.
var mistralSpeech = speech{
	name:        "mistral",
	path:        "/v1/chat/completions",
	credentials: []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	voice:       openAIVoice,
	endpoints: joined([]endpoint{
		{suffix: "/fim/completions", api: FIM}, {suffix: "/agents/completions", api: Chat},
		{suffix: "/moderations", api: Requests}, {suffix: "/classifications", api: Requests},
		{suffix: "/files", api: Requests},
	}, openAIEndpoints),
	readable: []string{"/models", "/files", "/batch/jobs"},
}

var fimForm = form{
	name: "fim", voice: openAIVoice, event: (*Answer).chatEvent, answer: chatForm.answer,
	count: func(r *Reader, m *members) int64 {
		return perRequest + r.text(m.value(kPrompt)) + r.text(m.value(kSuffix))
	},
	declared: func(m *members) int64 { return m.number(kMaxTokens) },
}
