// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"unsafe"

	"github.com/weirproxy/weir/policy/jsonwalk"
	"github.com/weirproxy/weir/policy/tokens"
)

// A hint for the model or the planner behind it goes into a request as one more message of the system, always at the same place
// and behind all that a provider may have cached, so that the cached beginning stays the same. It begins with a mark: an earlier
// hint is replaced.

// HintMark is what every hint in a body begins with.
const HintMark = "[weir] "

// TakesHint says whether a hint may go into a call's body. Into chats only where the model is one of OpenAI's: many other
// models' templates refuse a message of the system that does not come first.
func (d Dialect) TakesHint(api API, family tokens.Family) bool {
	switch api {
	case Chat, Responses:
		return d == OpenAI && (family == tokens.O200k || family == tokens.Cl100k)
	case Messages, Generate, Converse:
		return true
	}
	return false
}

// CountHint is the tokens of input that a hint costs.
func (r *Reader) CountHint(family tokens.Family, text string) int64 {
	return perMessage + r.set.Count(family, HintMark+text)
}

// Hinted says whether the body that was opened may hold a hint already.
func (r *Reader) Hinted() bool { return strings.Contains(r.members.body, `"`+HintMark) }

// InjectHint gives the body with the hint in it and without earlier ones; an empty text is none. Nothing else of the body changes.
// It returns nil for a body that stays as it is: one that is not understood, that has no place for a hint, or none but before
// something cached.
func InjectHint(api API, body []byte, text string) []byte {
	e, ok := openEditor(body)
	if !ok {
		return nil
	}
	if text != "" {
		text = Quote(HintMark + text)
	}
	switch api {
	case Chat:
		return e.messages("messages", `{"role":"system","content":`, text)
	case Responses:
		return e.messages("input", `{"role":"developer","content":`, text)
	case Messages:
		return e.anthropic(text)
	case Converse:
		return e.converse(text)
	case Generate:
		return e.gemini(text)
	}
	return nil
}

// Quote writes a JSON string. Control characters are left out.
func Quote(text string) string {
	b := append(make([]byte, 0, len(text)+2), '"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ':
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// An editor changes one member of a body.
type editor struct {
	body string
	at   int // of the opening brace
}

// openEditor takes a body that can be walked to its end.
func openEditor(body []byte) (e editor, ok bool) {
	e.body = unsafe.String(unsafe.SliceData(body), len(body))
	e.at = jsonwalk.SkipSpace(e.body, 0)
	if strings.HasPrefix(e.body, byteOrderMark) {
		e.at = jsonwalk.SkipSpace(e.body, len(byteOrderMark))
	}
	return e, jsonwalk.Members(e.body[min(e.at, len(e.body)):], func(string, string) bool { return true })
}

// member is a member of the body, and the last one of those that have one of the keys; "" if there is none.
func (e *editor) member(keys ...string) (value string) {
	jsonwalk.Members(e.body[e.at:], func(key, v string) bool {
		key = jsonwalk.Unescape(key)
		for _, k := range keys {
			if key == k {
				value = v
			}
		}
		return true
	})
	return value
}

// replace puts something in the place of a value that member gave.
func (e *editor) replace(value, with string) []byte {
	at := int(uintptr(unsafe.Pointer(unsafe.StringData(value))) - uintptr(unsafe.Pointer(unsafe.StringData(e.body))))
	return join(e.body[:at], with, e.body[at+len(value):])
}

// add adds a member at the body's beginning.
func (e *editor) add(member string) []byte {
	rest := e.body[e.at+1:]
	if next := jsonwalk.SkipSpace(rest, 0); rest[next] != '}' {
		member += ","
	}
	return join(e.body[:e.at+1], member, rest)
}

func join(parts ...string) (b []byte) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = make([]byte, 0, n)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// messages puts the hint behind the last message, unless the model is to go on with that one.
func (e *editor) messages(key, before, text string) []byte {
	list := e.member(key)
	if key == "input" && text != "" && list != `""` && strings.HasPrefix(list, `"`) {
		return e.replace(list, `[{"role":"user","content":`+list+`},`+before+text+`}]`)
	}
	items, old, ok := elements(list, func(role, text string) bool { return (role == `"system"` || role == `"developer"`) && isHint(text) })
	if !ok || len(items) == 0 || text == "" && !old {
		return nil
	}
	if text != "" {
		last := items[len(items)-1]
		if role, _ := roleAndText(last); last[0] != '{' || role == `"assistant"` {
			return nil
		}
		items = append(items, before+text+"}")
	}
	return e.replace(list, "["+strings.Join(items, ",")+"]")
}

// blocks puts the hint behind the last block of a list that is a value of the body.
func (e *editor) blocks(list, before, text string) []byte {
	items, old, ok := elements(list, func(_, text string) bool { return isHint(text) })
	if !ok || text == "" && !old {
		return nil
	}
	if text != "" {
		items = append(items, before+text+"}")
	}
	return e.replace(list, "["+strings.Join(items, ",")+"]")
}

// anthropic puts the hint behind the last block of the system prompt, unless messages behind it are cached.
func (e *editor) anthropic(text string) []byte {
	const before, cached = `{"type":"text","text":`, "cache_control"
	if strings.Contains(e.member("messages"), `"`+cached+`"`) || e.member(cached) != "" {
		text = ""
	}
	list := e.member("system")
	switch {
	case text == "" || strings.HasPrefix(list, "["):
		return e.blocks(list, before, text)
	case list == "":
		return e.add(`"system":[` + before + text + "}]")
	case list == "null" || list == `""`:
		return e.replace(list, "["+before+text+"}]")
	case list[0] == '"':
		return e.replace(list, "["+before+list+"},"+before+text+"}]")
	}
	return nil
}

// converse is anthropic for Bedrock, where not all models take a system prompt: only behind one that is there.
func (e *editor) converse(text string) []byte {
	if strings.Contains(e.member("messages"), `"cachePoint"`) {
		text = ""
	}
	return e.blocks(e.member("system"), `{"text":`, text)
}

// gemini puts the hint at the end of the system instruction, if there is one: some models take none, and a request with a cache of
// its own must not have one.
func (e *editor) gemini(text string) []byte {
	if cache := e.member("cachedContent", "cached_content"); cache != "" && cache != "null" {
		text = ""
	}
	instruction := editor{body: e.member("systemInstruction", "system_instruction")}
	return e.blocks(instruction.member("parts"), `{"text":`, text)
}

func isHint(raw string) bool { return strings.HasPrefix(raw, `"`+HintMark) }

// elements are those of a list, but for hints; old: there were some.
func elements(list string, hint func(role, text string) bool) (items []string, old, ok bool) {
	ok = jsonwalk.Items(list, func(item string) bool {
		if hint(roleAndText(item)) {
			old = true
		} else {
			items = append(items, item)
		}
		return true
	})
	return items, old, ok
}

// roleAndText are who says a message, or a block of one, and what, as they are written.
func roleAndText(item string) (role, text string) {
	jsonwalk.Members(item, func(key, value string) bool {
		switch jsonwalk.Unescape(key) {
		case "role":
			role = value
		case "content", "text":
			text = value
		}
		return true
	})
	return role, text
}
