// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// An outputCap is a place where an API declares the most output.
type outputCap struct {
	in     []string // names of the object that it stands in; nil: the top level
	names  []string // the first is written where none is declared
	silent bool     // none is written
}

// caps are the places where each API may declare the most output.
var caps = [numAPIs][]outputCap{
	Chat:        {{names: []string{"max_tokens", "max_completion_tokens"}}},
	Responses:   {{names: []string{"max_output_tokens"}}},
	Completions: {{names: []string{"max_tokens"}, silent: true}}, // where none means 16
	Messages:    {{names: []string{"max_tokens"}}},
	CohereChat:  {{names: []string{"max_tokens"}}},
	FIM:         {{names: []string{"max_tokens"}}},
	Generate:    {{in: []string{"generationConfig", "generation_config"}, names: []string{"maxOutputTokens", "max_output_tokens"}}},
	Converse:    {{in: []string{"inferenceConfig"}, names: []string{"maxTokens"}}},
	Invoke: { // nobody knows which one the model reads
		{names: []string{"max_tokens", "max_tokens_to_sample", "max_gen_len"}, silent: true},
		{in: []string{"textGenerationConfig"}, names: []string{"maxTokenCount"}, silent: true},
		{in: []string{"inferenceConfig"}, names: []string{"maxTokens", "max_new_tokens"}, silent: true},
	},
	OllamaChat:     {{in: []string{"options"}, names: []string{"num_predict"}}},
	OllamaGenerate: {{in: []string{"options"}, names: []string{"num_predict"}}},
}

// openAICaps are those of OpenAI's own chats: its newer models refuse the old name.
var openAICaps = []outputCap{{names: []string{"max_completion_tokens", "max_tokens"}}}

func (a API) caps(d Dialect) []outputCap {
	if a == Chat && d == OpenAI {
		return openAICaps
	}
	return caps[a]
}

// SetCap gives the body with no more output declared than most, wherever it is declared; where it is not, it is added. What
// declares less stays as it is. It is nil for a body that is no JSON object.
func SetCap(d Dialect, a API, body []byte, most int64) []byte {
	for _, c := range a.caps(d) {
		var w rewriter
		if !w.open(body) {
			return nil
		}
		w.cap(c, most)
		body = w.bytes()
	}
	return body
}

func (w *rewriter) cap(c outputCap, most int64) {
	object, member := w.body[w.start:], `"`+c.names[0]+`":`+strconv.FormatInt(most, 10)
	declared := false
	if c.in == nil {
		declared = w.lower(object, c, most)
	} else {
		inner := ""
		jsonwalk.Members(object, func(key, value string) bool {
			if isOneOf(key, c.in) {
				inner, declared = value, w.lower(value, c, most) // the last one counts
			}
			return true
		})
		switch {
		case inner == "":
			member = `"` + c.in[0] + `":{` + member + `}`
		case inner == "null":
			if !c.silent {
				w.replace(inner, `{`+member+`}`)
			}
			return
		case inner[0] != '{':
			return
		default:
			object = inner
		}
	}
	if !declared && !c.silent {
		w.insert(object, member)
	}
}

// lower lowers what the members of an object declare, and says whether any declares something.
func (w *rewriter) lower(object string, c outputCap, most int64) (declared bool) {
	null := "" // the last one counts
	jsonwalk.Members(object, func(key, value string) bool {
		switch {
		case !isOneOf(key, c.names):
		case value == "null":
			null = value
		default:
			declared = true
			if wholeNumber(value) > most || value[0] == '-' { // Ollama's -1 is as many as there are
				w.replace(value, strconv.FormatInt(most, 10))
			}
		}
		return true
	})
	if null != "" && !declared && !c.silent { // it declares nothing, and a member of another name might
		w.replace(null, strconv.FormatInt(most, 10))
	}
	return declared || null != ""
}
