// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"github.com/weirproxy/weir/policy/jsonwalk"
)

// The functions here say whether something is text and nothing else, so that its length bounds its tokens. What cannot be walked
// to its end is not: another reader of JSON may find more in it.

// textsUnder says whether all that the items of a list hold under a key are lists of objects with nothing but a text.
func textsUnder(list, key string) bool {
	return list == "" || jsonwalk.Items(list, func(item string) bool { return textUnder(item, key) })
}

// textUnder is textsUnder for one item.
func textUnder(item, key string) bool {
	return item == "" || jsonwalk.Members(item, func(k, v string) bool {
		return k == key && onlyTexts(v) || k != key && strings.IndexByte(k, '\\') < 0
	})
}

func onlyTexts(list string) bool {
	return list == "" || jsonwalk.Items(list, func(part string) bool {
		return jsonwalk.Members(part, func(k, v string) bool { return k == "text" && v[0] == '"' })
	})
}

// messagesAreText says whether all that the body's messages hold is text.
func messagesAreText(m *members) bool {
	return areTexts(m.values[kMessages]) && isTextContent(m.values[kSystem])
}

// areTexts says whether a list holds messages with text content only.
func areTexts(list string) bool {
	return list == "" || jsonwalk.Items(list, func(message string) bool {
		return jsonwalk.Members(message, func(key, value string) bool {
			return key == "content" && isTextContent(value) || key != "content" && strings.IndexByte(key, '\\') < 0
		})
	})
}

// isTextContent says whether a content is none, a string, or a list of parts that are text.
func isTextContent(content string) bool {
	if content == "" || content == "null" || content[0] == '"' {
		return true
	}
	return jsonwalk.Items(content, func(part string) bool {
		text := false
		return jsonwalk.Members(part, func(key, value string) bool {
			if key == "type" {
				text = value == `"text"` || value == `"input_text"` || value == `"output_text"`
			}
			return true
		}) && text
	})
}
