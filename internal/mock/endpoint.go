// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"net/http"
	"strings"
)

// family decides the shape of errors and limit headers.
type family int

const (
	familyTool family = iota
	familyOpenAI
	familyAnthropic
)

// endpoint is one kind of path.
type endpoint struct {
	suffix  string
	family  family
	method  string // "" is any
	metered bool   // limits apply
	parsed  bool   // the body is an LLM request
	output  bool   // the answer has output tokens
	many    bool   // one call may ask for several answers
	json    func(b text, a *answer) text
	stream  func(k *sink, a *answer) error // nil: JSON only
}

// endpoints are tried in order: a longer suffix stands before its own ending.
var endpoints = []endpoint{
	{suffix: "/chat/completions", family: familyOpenAI, method: http.MethodPost, metered: true, parsed: true, output: true, many: true, json: chatJSON, stream: chatStream},
	{suffix: "/completions", family: familyOpenAI, method: http.MethodPost, metered: true, parsed: true, output: true, many: true, json: completionJSON, stream: completionStream},
	{suffix: "/responses", family: familyOpenAI, method: http.MethodPost, metered: true, parsed: true, output: true, json: responsesJSON, stream: responsesStream},
	{suffix: "/embeddings", family: familyOpenAI, method: http.MethodPost, metered: true, parsed: true, many: true, json: embeddingsJSON},
	{suffix: "/messages/count_tokens", family: familyAnthropic, method: http.MethodPost, parsed: true, json: countTokensJSON},
	{suffix: "/messages", family: familyAnthropic, method: http.MethodPost, metered: true, parsed: true, output: true, json: messagesJSON, stream: messagesStream},
}

var (
	modelsOpenAI    = endpoint{suffix: "/models", family: familyOpenAI, method: http.MethodGet, json: modelsJSON}
	modelsAnthropic = endpoint{suffix: "/models", family: familyAnthropic, method: http.MethodGet, json: modelsAnthropicJSON}
	tool            = endpoint{metered: true, json: toolJSON}
)

func findEndpoint(r *http.Request) *endpoint {
	path := strings.TrimSuffix(r.URL.Path, "/")
	for i := range endpoints {
		if strings.HasSuffix(path, endpoints[i].suffix) {
			return &endpoints[i]
		}
	}
	if !strings.HasSuffix(path, "/models") {
		return &tool
	}
	// Both providers have this path; only Anthropic's clients say their version.
	if r.Header.Get("anthropic-version") != "" {
		return &modelsAnthropic
	}
	return &modelsOpenAI
}

// allows says whether the method fits; HEAD is asked like GET.
func (e *endpoint) allows(method string) bool {
	return e.method == "" || method == e.method || method == http.MethodHead && e.method == http.MethodGet
}

// allow is the value of the Allow header.
func (e *endpoint) allow() string {
	switch e.method {
	case "":
		return "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
	case http.MethodGet:
		return "GET, HEAD, OPTIONS"
	}
	return e.method + ", OPTIONS"
}

// modelInPath is Azure's /openai/deployments/NAME/…, empty where there is none.
func modelInPath(path string) string {
	_, rest, ok := strings.Cut(path, "/deployments/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}
