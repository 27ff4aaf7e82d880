// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const benchSize = 60_000

// phrases builds a text of about benchSize bytes from these, in random order.
func phrases(join string, list ...string) string {
	r := rand.New(rand.NewPCG(7, 8))
	var b strings.Builder
	for b.Len() < benchSize {
		b.WriteString(list[r.IntN(len(list))])
		b.WriteString(join)
	}
	return b.String()
}

func benchProse() string {
	return phrases(" ", "A filter sits between the agents and their provider.", "It counts what every request will cost,",
		"and it holds back those that do not fit;", "nobody else has to wait for them.", "Isn't that what you'd want?",
		"Yesterday's quota of 250,000 tokens was spent before noon.", "The gateway's operators noticed it by chance.",
		"Unfortunately, unremarkable misconfigurations occasionally accumulate.", "So we measured again (twice), and found the fault.")
}

func benchJSON() string {
	r := rand.New(rand.NewPCG(9, 10))
	var items []any
	for range 300 {
		items = append(items, map[string]any{
			"id": fmt.Sprintf("call_%08x", r.Uint32()), "type": "function", "index": r.IntN(1000), "score": r.Float64(), "ok": r.IntN(2) == 0,
			"arguments": map[string]any{"city": "Oslo", "max_results": r.IntN(50), "tags": []string{"weather", "forecast"}, "note": nil},
		})
	}
	b, err := json.Marshal(items)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func benchCode() string {
	return phrases("\n", "func (b *Bucket) Take(now Time, n int64) bool {", "\tif n > b.level {", "\t\treturn false", "\t}", "\tb.level -= n",
		"\treturn true", "}", "", "// refill adds what the time since the last call has earned.", "\tfor i, x := range items[1:] {",
		"\t\tsum += float64(x.Weight) * 0.25", "const maxRetries = 16", "\tlog.Printf(\"bucket %q: %d left\", b.name, b.level)")
}

func benchChinese() string {
	return phrases("", "每个请求都有成本,", "过滤器先计数再放行。", "昨天的配额在中午之前就用完了,", "我们重新测量了两次,", "发现了问题。", "代理不必等待别人,",
		"令牌的数量决定速度。", "这样更公平!")
}

func benchLetters() string {
	r := rand.New(rand.NewPCG(11, 12))
	b := make([]byte, benchSize)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// BenchmarkCount counts each text as if it were new: the cache of merged pieces is emptied before.
func BenchmarkCount(b *testing.B) {
	for _, text := range []struct{ name, s string }{
		{"prose", benchProse()},
		{"json", benchJSON()},
		{"code", benchCode()},
		{"chinese", benchChinese()},
		{"letters", benchLetters()},
		{"spaces", strings.Repeat(" ", benchSize)},
		{"one_letter", strings.Repeat("a", benchSize)},
	} {
		for _, f := range []Family{O200k, Cl100k} {
			b.Run(text.name+"/"+f.String(), func(b *testing.B) {
				c := New(f)
				bench(b, len(text.s), func() {
					c.cache = [cacheSize]uint64{}
					c.Count(text.s)
				})
			})
		}
	}
}

// BenchmarkCountJSON counts the same prose without an escape, with some, and with nothing else.
func BenchmarkCountJSON(b *testing.B) {
	prose := benchProse()
	var hex strings.Builder
	for _, r := range prose[:benchSize/6] {
		fmt.Fprintf(&hex, `\u%04x`, r)
	}
	for _, text := range []struct{ name, s string }{
		{"plain", prose},
		{"some", strings.ReplaceAll(prose, ". ", `.\n`)},
		{"all", hex.String()},
	} {
		b.Run(text.name, func(b *testing.B) {
			c := New(O200k)
			bench(b, len(text.s), func() { c.CountJSON(text.s) })
		})
	}
}

func bench(b *testing.B, size int, count func()) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		count()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/byte")
}
