// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strconv"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// An outputCap is a place where an API declares the most output.
type outputCap struct {
	in     []string // names of the object that it stands in; nil: the top level
	names  []string // the first is written where none is declared
	silent bool     // none is written
}

// caps gives the places where an API may declare the most output.
func (a API) caps(d Dialect) []outputCap {
	names := []string{"max_tokens", "max_completion_tokens"}
	switch a {
	case Chat:
		if d == OpenAI { // whose newer models refuse the old name
			names = []string{"max_completion_tokens", "max_tokens"}
		}
	case Responses:
		names = []string{"max_output_tokens"}
	case Completions: // where none means 16
		return []outputCap{{names: names, silent: true}}
	case Messages, CohereChat, FIM:
	case Generate:
		return []outputCap{{in: []string{"generationConfig", "generation_config"}, names: []string{"maxOutputTokens", "max_output_tokens"}}}
	case Converse:
		return []outputCap{{in: []string{"inferenceConfig"}, names: []string{"maxTokens"}}}
	case Invoke: // nobody knows which one the model reads
		return []outputCap{
			{names: []string{"max_tokens", "max_tokens_to_sample", "max_gen_len"}, silent: true},
			{in: []string{"textGenerationConfig"}, names: []string{"maxTokenCount"}, silent: true},
			{in: []string{"inferenceConfig"}, names: []string{"maxTokens", "max_new_tokens"}, silent: true},
		}
	case OllamaChat, OllamaGenerate:
		return []outputCap{{in: []string{"options"}, names: []string{"num_predict"}}}
	default:
		return nil
	}
	return []outputCap{{names: names}}
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
			if slices.Contains(c.in, unescaped(key)) {
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
	jsonwalk.Members(object, func(key, value string) bool {
		if slices.Contains(c.names, unescaped(key)) {
			declared = true
			if wholeNumber(value) > most || value == "null" && !c.silent || value[0] == '-' { // Ollama's -1 is as many as there are
				w.replace(value, strconv.FormatInt(most, 10))
			}
		}
		return true
	})
	return declared
}
