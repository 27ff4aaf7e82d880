// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// A Dialect is how a provider speaks.
type Dialect uint8

// Dialects, by their names in policies.
const (
	Generic   Dialect = iota // any HTTP API: requests are counted, bodies are not read
	OpenAI                   // and all that copy it
	Anthropic                // messages
	numDialects
)

var dialectNames = [numDialects]string{"generic", "openai", "anthropic"}

func (d Dialect) String() string {
	if d >= numDialects {
		return "unknown"
	}
	return dialectNames[d]
}

// Parse finds a dialect by name.
func Parse(name string) (Dialect, bool) {
	for d, n := range dialectNames {
		if n == name {
			return Dialect(d), true
		}
	}
	return 0, false
}

// credentialHeaders are where a dialect's clients put the credential, the one that the provider prefers first.
var credentialHeaders = [numDialects][]string{
	Generic:   {"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	OpenAI:    {"authorization", "api-key", "x-api-key", "x-goog-api-key"},
	Anthropic: {"x-api-key", "authorization", "api-key", "x-goog-api-key"},
}

// CredentialHeaders are the headers in which a credential may be, in the order in which they are looked at.
func (d Dialect) CredentialHeaders() []string { return credentialHeaders[d] }

// An API is one kind of call of a dialect.
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
	numAPIs
)

var apiNames = [numAPIs]string{"unrecognised", "requests", "chat", "responses", "completions", "embeddings", "messages"}

func (a API) String() string {
	if a >= numAPIs {
		return "unknown"
	}
	return apiNames[a]
}

// Metered says whether calls of the API cost tokens, so that request and answer must be read.
func (a API) Metered() bool { return a >= Chat }

// An endpoint is the last segments of a path, and the API that is there.
type endpoint struct {
	suffix string
	api    API
}

// endpoints by dialect. The first that matches counts, so the longer one comes first. GET, HEAD and OPTIONS never cost
// tokens.
var endpoints = [numDialects][]endpoint{
	OpenAI: {
		{"/chat/completions", Chat}, {"/responses", Responses}, {"/completions", Completions}, {"/embeddings", Embeddings},
		{"/responses/input_tokens", Requests}, {"/moderations", Requests}, {"/files", Requests},
		{"/models", Requests},
	},
	Anthropic: {
		{"/messages/count_tokens", Requests}, {"/messages", Messages}, {"/models", Requests},
	},
}

// readable are paths under which everything that only reads or cancels is known to be free.
var readable = []string{"/models", "/files", "/batches", "/responses", "/chat/completions", "/messages/batches"}

// APIOf tells which API a request is for, by the end of its path (with or without query). A path that is written in an
// unusual way, with double slashes, escaped slashes or other case, is recognised all the same: better limited than free.
func (d Dialect) APIOf(method, path string) API {
	if d == Generic {
		return Requests
	}
	path = canonical(path)
	if method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "DELETE" || strings.HasSuffix(path, "/cancel") {
		for _, r := range readable {
			if strings.HasSuffix(path, r) || strings.Contains(path, r+"/") {
				return Requests
			}
		}
		if method == "OPTIONS" {
			return Requests
		}
		return Unrecognised
	}
	for _, e := range endpoints[d] {
		if strings.HasSuffix(path, e.suffix) {
			return e.api
		}
	}
	return Unrecognised
}

// Climbs says whether a path has a dot segment behind an escaped slash, which Envoy leaves alone and a provider may follow to
// another path than the one that was looked at.
func Climbs(path string) bool {
	if strings.IndexByte(path, '%') < 0 {
		return false
	}
	for _, segment := range strings.Split(canonical(path), "/") {
		if segment == ".." || segment == "." {
			return true
		}
	}
	return false
}

// canonical drops the query, undoes escaped and doubled slashes, and lowers the case. A path in plain form is not copied.
func canonical(path string) string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if strings.Contains(path, "%") {
		path = strings.NewReplacer("%2F", "/", "%2f", "/").Replace(path)
	}
	path = strings.ToLower(path)
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return strings.TrimRight(path, "/")
}
