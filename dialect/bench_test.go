// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"strings"
	"testing"
)

// chatBody is a chat as agents send it, of about so many bytes: messages with escapes, calls of tools, and two tools.
func chatBody(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-4o","max_tokens":100,"temperature":0.2,"messages":[{"role":"system","content":"You are an assistant.\nAnswer briefly."}`)
	for i := 0; b.Len() < size-700; i++ {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"text","text":"Question %d: what is in the \"second\" file?\nLook it up, and say what each function of it is for, and who calls it."}]}`, i)
		case 1:
			fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"src/file%d.go\"}"}}]}`, i, i)
		case 2:
			fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"call_%d","content":"func Add(a, b int) int {\n\treturn a + b\n}\n\n// Sub subtracts.\nfunc Sub(a, b int) int { return a - b }\n"}`, i-1)
		}
	}
	b.WriteString(`],"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file","parameters":{"type":"object","properties":` +
		`{"path":{"type":"string","description":"Its path"},"lines":{"type":"integer"}},"required":["path"]}}},{"type":"function","function":` +
		`{"name":"search","parameters":{"type":"object","properties":{"query":{"type":"string"},"kind":{"type":"string","enum":["text","name"]}}}}}]}`)
	return []byte(b.String())
}

func BenchmarkCountChat(b *testing.B) {
	for _, size := range []int{2 << 10, 60 << 10} {
		b.Run(fmt.Sprint(size>>10, "KB"), func(b *testing.B) {
			body := chatBody(size)
			var r Reader
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if q, ok := r.Open(Chat, body, exactly); !ok || q.How != Exact && r.Count().Input < int64(len(body)/8) {
					b.Fatal("not counted")
				}
			}
		})
	}
}
