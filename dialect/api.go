// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/weirproxy/weir/policy/jsonwalk"

// A Dialect is how a provider speaks.
type Dialect uint8

// Dialects. Their names in policies are in the table.
const (
	Generic   Dialect = iota // any HTTP API: requests are counted, bodies are not read
	OpenAI                   // and all that copy it: Azure, vLLM, SGLang, Groq …
	Anthropic                // messages, also at Vertex and Bedrock
	Gemini                   // and Vertex
	Bedrock                  // Converse, and InvokeModel with the bodies of its models' makers
	Cohere
	Mistral
	Ollama
	numDialects
)

// A speech is all that makes a dialect.
type speech struct {
	name        string
	path        string     // of what most requests are for
	credentials []string   // headers in which clients put the credential, the one that the provider prefers first
	queryKey    string     // query parameter in which they may put it
	voice       voice      // of refusals, where the API that was asked has none of its own
	endpoints   []endpoint // the first that matches counts, so the longer one comes first
	readable    []string   // paths under which all that only reads or cancels is known to be free
}

var speeches = [numDialects]*speech{
	Generic:   {name: "generic", credentials: []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"}},
	OpenAI:    &openAISpeech,
	Anthropic: &anthropicSpeech,
	Gemini:    &geminiSpeech,
	Bedrock:   &bedrockSpeech,
	Cohere:    &cohereSpeech,
	Mistral:   &mistralSpeech,
	Ollama:    &ollamaSpeech,
}

func (d Dialect) String() string {
	if d >= numDialects {
		return "unknown"
	}
	return speeches[d].name
}

// Parse finds a dialect by name.
func Parse(name string) (Dialect, bool) {
	for d := range speeches {
		if speeches[d].name == name {
			return Dialect(d), true
		}
	}
	return 0, false
}

// Path is where most requests of the dialect go.
func (d Dialect) Path() string { return speeches[d].path }

// CredentialHeaders are the headers in which a credential may be, in the order in which they are looked at.
func (d Dialect) CredentialHeaders() []string { return speeches[d].credentials }

// CredentialParameter is the query parameter in which a credential may be, if it is in no header; "" if there is none.
func (d Dialect) CredentialParameter() string { return speeches[d].queryKey }

// An API is one kind of call.
type API uint8

// APIs.
const (
	Unrecognised API = iota // of an LLM provider: what it costs is not known
	Requests                // costs a request, no tokens
	Chat
	Responses
	Completions
	Embeddings
	Messages
	Generate // Gemini's
	EmbedContent
	Converse // Bedrock's
	Invoke
	CohereChat
	CohereEmbed
	Rerank
	FIM // Mistral's
	OllamaChat
	OllamaGenerate
	OllamaEmbed
	numAPIs
)

// A form is how requests and answers of one API are written.
type form struct {
	name     string
	voice    voice                             // of refusals
	declared func(*members) int64              // the most output, -1 if none is declared; nil: there is no output
	text     func(*members) bool               // whether all that it holds is text; nil: nobody knows before it is counted
	count    func(*Reader, *members) int64     // tokens of input
	streams  bool                              // a stream, unless the body says otherwise
	tells    bool                              // a stream says its usage, asked or not
	rule     usageRule                         // what is inside what in its usage
	answer   []want                            // what of an answer is read
	event    func(a *Answer, e jsonwalk.Value) // reads an event of a stream
}

var forms = [numAPIs]*form{
	Unrecognised: {name: "unrecognised"},
	Requests:     {name: "requests"},
	Chat:         &chatForm,
	Responses:    &responsesForm,
	Completions:  &completionsForm,
	Embeddings:   &embeddingsForm,
	Messages:     &messagesForm,
	Generate:     &generateForm, EmbedContent: &embedContentForm,
	Converse: &converseForm, Invoke: &invokeForm,
	CohereChat: &cohereChatForm, CohereEmbed: &cohereEmbedForm, Rerank: &rerankForm,
	FIM:        &fimForm,
	OllamaChat: &ollamaChatForm, OllamaGenerate: &ollamaGenerateForm, OllamaEmbed: &ollamaEmbedForm,
}

func (a API) String() string {
	if a >= numAPIs {
		return "unknown"
	}
	return forms[a].name
}

// Metered says whether calls of the API cost tokens, so that request and answer must be read.
func (a API) Metered() bool { return a >= Chat }

// TellsUsage says whether a stream of the API ends with its usage even if nobody asked.
func (a API) TellsUsage() bool { return forms[a].tells }
