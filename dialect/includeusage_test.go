// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever the body, it says afterwards what it said before, and asks for usage.
func TestAskForUsage(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","stream":true}`:                       `{"stream_options":{"include_usage":true},"model":"m","stream":true}`,
		` { }`:                                              ` {"stream_options":{"include_usage":true} }`,
		"\ufeff{\"a\":1}":                                   "\ufeff{\"stream_options\":{\"include_usage\":true},\"a\":1}",
		`{"stream_options":null,"a":1}`:                     `{"stream_options":{"include_usage":true},"a":1}`,
		`{"a":1,"stream_options":{}}`:                       `{"a":1,"stream_options":{"include_usage":true}}`,
		`{"stream_options":{"include_usage":false}}`:        `{"stream_options":{"include_usage":true}}`,
		`{"stream_options" : {"x":{"y":[1]},"z":"{"} }`:     `{"stream_options" : {"x":{"y":[1]},"z":"{","include_usage":true} }`,
		`{"stream_options":"odd","stream_options":{"a":1}}`: `{"stream_options":"odd","stream_options":{"a":1,"include_usage":true}}`,
		`[{}]`: "", `x{"a":1}`: "", ``: "",
	} {
		if got := string(AskForUsage([]byte(body))); got != want {
			t.Errorf("%s became %s, want %s", body, got, want)
		}
	}
}

func FuzzAskForUsage(f *testing.F) {
	f.Add([]byte(`{"stream_options":{"include_usage":null,"a":"\"}"},"b":[{"stream_options":1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := AskForUsage(body)
		var before, after map[string]any
		if json.Unmarshal(body, &before) != nil || before == nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s became %s: %v", body, got, err)
		}
		options, _ := after["stream_options"].(map[string]any)
		if options["include_usage"] != true {
			t.Fatalf("%s became %s", body, got)
		}
		old, _ := before["stream_options"].(map[string]any)
		delete(options, "include_usage")
		delete(old, "include_usage")
		if len(options) != len(old) || len(old) > 0 && !reflect.DeepEqual(old, options) {
			t.Fatalf("options of %s became those of %s", body, got)
		}
		delete(before, "stream_options")
		delete(after, "stream_options")
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", body, got)
		}
	})
}

// However a stream is cut into chunks, the caller gets all of it but the event that says only usage.
func TestUsageCutter(t *testing.T) {
	events := []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n", ": comment\r\n\r\n", "event: x\ndata: {\"a\":\n" + "data: 1}\n\n",
		"data: {\"choices\":[{\"delta\":{\"content\":\"\\\"choices\\\":[],\\\"usage\\\":{}\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n",
		"data: " + strings.Repeat("x", 40_000) + "\n\n", "data: " + strings.Repeat("x", 20_000) + "\r\ndata: {\"choices\":[],\"usage\":{}}\r\n\r\n", "data: [DONE]\n\n", "\n", "data: {\"usage\":{\"prompt_tokens\":1}}\r\r",
		"data: {\"choices\":[],\"usage\":null}\n\n",
	}
	usage := []string{
		"data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n", "data:{\"choices\":[],\ndata:\"usage\":{}}\r\n\r\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		var in, want strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			if rapid.IntRange(0, 3).Draw(t, "usage") == 0 {
				in.WriteString(rapid.SampledFrom(usage).Draw(t, "usage event"))
				continue
			}
			e := rapid.SampledFrom(events).Draw(t, "event")
			in.WriteString(e)
			want.WriteString(e)
		}
		tail := rapid.SampledFrom([]string{"", "data: [DO", "data: {\"choices\":[]"}).Draw(t, "tail")
		in.WriteString(tail)
		want.WriteString(tail)
		var c UsageCutter
		var got []byte
		for rest := in.String(); ; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "chunk")
			if i := strings.IndexAny(rest[min(1, len(rest)):], "\r\n"); i >= 0 && rapid.Bool().Draw(t, "up to a line's end") {
				n = i + 1 + rapid.IntRange(0, 1).Draw(t, "and its first byte")
			}
			got = append(got, c.Cut([]byte(rest[:n]), n == len(rest))...)
			if rest = rest[n:]; rest == "" {
				break
			}
		}
		if string(got) != want.String() {
			t.Fatalf("%.300q\nbecame %.300q\nwant   %.300q", in.String(), got, want.String())
		}
	})
}
