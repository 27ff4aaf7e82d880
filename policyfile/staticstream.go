// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
)

type object = map[string]any

func objectOf(data []byte) (o object, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return nil, fmt.Errorf("no JSON object: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON object")
	}
	return o, nil
}

// events is a stream.
type events struct {
	bytes.Buffer
	n int // of the events of a response
}

func (e *events) data(o object) {
	b, _ := json.Marshal(o)
	fmt.Fprintf(e, "data: %s\n\n", b)
}

// named writes an event whose name is its type.
func (e *events) named(kind string, o object) {
	o["type"] = kind
	fmt.Fprintf(e, "event: %s\n", kind)
	e.data(o)
}

// with is a copy of an object with other members; those that are nil are null.
func with(o object, changes object) object {
	c := maps.Clone(o)
	maps.Copy(c, changes)
	return c
}

// objects are the items of a list of objects; an error if it is none, or empty.
func objects(v any, name string) ([]object, error) {
	list, _ := v.([]any)
	var all []object
	for _, item := range list {
		o, ok := item.(object)
		if !ok {
			return nil, fmt.Errorf("%s has something else than objects", name)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no %s", name)
	}
	return all, nil
}

// chat writes a chat completion: each choice, and then why it ends.
func (e *events) chat(o object) error {
	choices, err := objects(o["choices"], "choices")
	if err != nil {
		return err
	}
	chunk := func(choice, delta object, finish any) {
		c := with(o, object{"object": "chat.completion.chunk", "choices": []object{{
			"index": choice["index"], "delta": delta, "finish_reason": finish, "logprobs": nil,
		}}})
		delete(c, "usage")
		e.data(c)
	}
	for _, choice := range choices {
		message, ok := choice["message"].(object)
		if !ok {
			return errors.New("a choice without a message")
		}
		if calls, err := objects(message["tool_calls"], "tool_calls"); err == nil {
			for i := range calls {
				calls[i]["index"] = i
			}
		}
		chunk(choice, message, nil)
	}
	for _, choice := range choices {
		chunk(choice, object{}, choice["finish_reason"])
	}
	e.WriteString("data: [DONE]\n\n")
	return nil
}

// completion writes an old completion.
func (e *events) completion(o object) error {
	if _, err := objects(o["choices"], "choices"); err != nil {
		return err
	}
	c := maps.Clone(o)
	delete(c, "usage")
	e.data(c)
	e.WriteString("data: [DONE]\n\n")
	return nil
}

// numbered writes an event of a response.
func (e *events) numbered(kind string, o object) {
	o["sequence_number"] = e.n
	e.n++
	e.named(kind, o)
}

// response writes a response: each item of its output, and of a message its texts.
func (e *events) response(o object) error {
	output, err := objects(o["output"], "output")
	if err != nil {
		return err
	}
	begun := with(o, object{"status": "in_progress", "output": []any{}, "usage": nil})
	e.numbered("response.created", object{"response": begun})
	e.numbered("response.in_progress", object{"response": begun})
	for i, item := range output {
		at := object{"output_index": i, "item_id": item["id"]}
		parts, _ := objects(item["content"], "content")
		start := item
		if item["type"] == "message" {
			start = with(item, object{"status": "in_progress", "content": []any{}})
		}
		e.numbered("response.output_item.added", object{"output_index": i, "item": start})
		for k, part := range parts {
			if part["type"] != "output_text" {
				continue
			}
			at := with(at, object{"content_index": k})
			e.numbered("response.content_part.added", with(at, object{"part": with(part, object{"text": ""})}))
			e.numbered("response.output_text.delta", with(at, object{"delta": part["text"], "logprobs": []any{}}))
			e.numbered("response.output_text.done", with(at, object{"text": part["text"], "logprobs": []any{}}))
			e.numbered("response.content_part.done", with(at, object{"part": part}))
		}
		e.numbered("response.output_item.done", object{"output_index": i, "item": item})
	}
	e.numbered("response.completed", object{"response": o})
	return nil
}

// message writes a message of Anthropic's.
func (e *events) message(o object) error {
	blocks, err := objects(o["content"], "content")
	if err != nil {
		return err
	}
	usage, ok := o["usage"].(object)
	if !ok {
		return errors.New("no usage")
	}
	e.named("message_start", object{"message": with(o, object{"content": []any{}, "stop_reason": nil, "stop_sequence": nil})})
	for i, block := range blocks {
		var start, delta object
		switch block["type"] {
		case "text":
			start, delta = with(block, object{"text": ""}), object{"type": "text_delta", "text": block["text"]}
		case "tool_use":
			input, _ := json.Marshal(block["input"])
			start, delta = with(block, object{"input": object{}}), object{"type": "input_json_delta", "partial_json": string(input)}
		default:
			return fmt.Errorf("a block of type %v", block["type"])
		}
		e.named("content_block_start", object{"index": i, "content_block": start})
		e.named("content_block_delta", object{"index": i, "delta": delta})
		e.named("content_block_stop", object{"index": i})
	}
	e.named("message_delta", object{
		"delta": object{"stop_reason": o["stop_reason"], "stop_sequence": o["stop_sequence"]},
		"usage": object{"output_tokens": usage["output_tokens"]},
	})
	e.named("message_stop", object{})
	return nil
}
