// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/weirproxy/weir/filter/filtertest"
)

func pack(encoding string, plain []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	case "deflate":
		w = zlib.NewWriter(&b)
	case "Deflate":
		w, _ = flate.NewWriter(&b, 6)
	}
	_, _ = w.Write(plain)
	_ = w.Close()
	return b.Bytes()
}

func packed(path, tenant, encoding string, body []byte) filtertest.Request {
	r := request(path, tenant, string(body))
	r.Headers = append(r.Headers, [2]string{"content-encoding", encoding})
	return r
}

// A body that is compressed counts as what it is, for the model that it names, and leaves as it came.
func TestCompressedRequests(t *testing.T) {
	policy := strings.Replace(onePolicy, `"openai":{`, `"openai":{"models":{"dear":{"rpm":"1","burst":"100%"},"*":{"rpm":"1000"}},`, 1)
	plain := []byte(`{"model":"gpt-4o","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"` + strings.Repeat("hello ", 3000) + `"}]}`)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, encoding := range []string{"gzip", "deflate", "Deflate", "br", "zstd"} {
			x := p.Worker(0).Open(packed("/openai/v1/chat/completions", encoding, encoding, pack(encoding, plain)))
			if !x.Sent || !bytes.Equal(x.Body, pack(encoding, plain)) || x.Upstream("content-encoding") != encoding {
				t.Fatalf("%s: sent %v, %d bytes, %+v", encoding, x.Sent, len(x.Body), x.Reply)
			}
			if got := used(t, p, encoding); got != 3+4+3001+1000 {
				t.Errorf("%s: %d tokens count", encoding, got)
			}
			p.Sleep(2 * time.Minute)
			dear := pack(encoding, bytes.Replace(plain, []byte("gpt-4o"), []byte("dear"), 1))
			for i := range 2 {
				if x := p.Worker(0).Open(packed("/openai/v1/chat/completions", encoding, encoding, dear)); x.Sent != (i == 0) {
					t.Errorf("%s: call %d of a model with one a minute: sent %v", encoding, i, x.Sent)
				}
			}
		}
	})
}

// Of a compressed body beyond the cap the beginning is read: its model, and its length in proportion. (With zstd to within a
// block.)
func TestCompressedBodyBeyondTheCap(t *testing.T) {
	policy := strings.Replace(onePolicy, `"openai":{`, `"openai":{"models":{"dear":{"rpm":"1","burst":"100%"},"*":{"rpm":"1000"}},`, 1)
	policy = strings.ReplaceAll(policy, "100000", "1000000")
	policy = strings.Replace(policy, `{`, `{"body":{"parse":"160KiB"},`, 1)
	var text strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&text, "%x ", uint32(i)*2654435761)
	}
	plain := []byte(`{"model":"dear","stream":true,"max_tokens":1000,"messages":[{"role":"user","content":"` + text.String() + `"}]}`)
	both(t, 1, policy, func(t *testing.T, p *filtertest.Process) {
		for _, encoding := range []string{"gzip", "br", "zstd"} {
			body := pack(encoding, plain)
			r := packed("/openai/v1/chat/completions", encoding, encoding, body)
			r.Headers = append(r.Headers, [2]string{"content-length", fmt.Sprint(len(body))})
			r.Chunks = pieces(body, 10_000)
			x := p.Worker(0).Open(r)
			if !x.Sent || !bytes.Equal(x.Body, body) || x.Buffered > 171<<10 {
				t.Fatalf("%s: sent %v, %d of %d bytes, %d held", encoding, x.Sent, len(x.Body), len(body), x.Buffered)
			}
			limit, want := int64(1_000_000), int64(len(plain))/4
			probe := p.Worker(0).Open(chat(encoding, "hi", int(limit)-8))
			_, left, _ := strings.Cut(probe.Reply.Headers.Get("ratelimit"), ";r=")
			left, _, _ = strings.Cut(left, ";")
			if n, err := strconv.ParseInt(left, 10, 64); err != nil || limit-n < want*7/10 || limit-n > want*13/10 {
				t.Errorf("%s: %d tokens by length, want about %d: %v", encoding, limit-n, want, err)
			}
			if x := p.Worker(0).Open(r); x.Sent {
				t.Errorf("%s: the model was not read", encoding)
			}
			p.Sleep(2 * time.Minute)
		}
	})
}

// Bodies that are compressed wrongly are refused as any other that cannot be read. A bomb is inflated no further than the
// bound, and counts as long as it is.
func TestHostileCompression(t *testing.T) {
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		cut := pack("gzip", []byte(`{"model":"m","messages":[]}`))
		for name, r := range map[string]filtertest.Request{
			"no gzip": packed("/openai/v1/responses", "a", "gzip", []byte("hello")), "cut off": packed("/openai/v1/responses", "a", "gzip", cut[:len(cut)-9]),
			"no JSON": packed("/openai/v1/responses", "a", "zstd", pack("zstd", []byte("hello"))),
			"enc-05":  request("/openai/v1/responses", "a", string(pack("zstd", []byte(`{"model":"m","input":"hello"}`)))),
		} {
			if x := p.Worker(0).Open(r); x.Reply == nil || x.Reply.Status != 400 {
				t.Errorf("%s: %+v", name, x.Reply)
			}
		}
		for _, encoding := range []string{"gzip", "br", "zstd"} {
			bomb := pack(encoding, []byte(`{"input":"`+strings.Repeat("0", 100<<20)))
			began := time.Now()
			x := p.Worker(0).Open(packed("/openai/v1/responses", encoding, encoding, bomb))
			if took := time.Since(began); took > time.Second {
				t.Errorf("dos-06, %s: it took %v", encoding, took)
			}
			if got := used(t, p, encoding); x.Sent && got < limit-10_000 {
				t.Errorf("dos-06, %s: %d tokens", encoding, got)
			}
		}
		// enc-06: five thousand words in 150 bytes.
		if x := p.Worker(0).Open(packed("/openai/v1/chat/completions", "b", "gzip", pack("gzip", []byte(`{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("word ", 150_000)+`"}]}`)))); x.Sent {
			t.Error("enc-06: a large prompt was admitted as a small one")
		}
	})
}

// An answer that comes compressed although it was asked for plain is read all the same.
func TestCompressedAnswers(t *testing.T) {
	enc01, _ := base64.StdEncoding.DecodeString("H4sIAAAAAA==")
	rest, _ := base64.StdEncoding.DecodeString("AAIDq1YqqSxIVbJSyk0tLk5MT1XSUSoF01bVSpl5BaUl8SX52al5xUpWhgY6SvmlJchCJrW1AJ8d5RNAAAAA")
	const sse = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\ndata: {\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}\n\n"
	both(t, 1, onePolicy, func(t *testing.T, p *filtertest.Process) {
		for i, row := range []struct {
			path, contentType, encoding string
			chunks                      [][]byte
		}{
			{"/anthropic/v1/messages", "application/json", "gzip", [][]byte{enc01, rest}},
			{"/openai/v1/chat/completions", "text/event-stream", "zstd", pieces(pack("zstd", []byte(sse)), 7)},
			{"/openai/v1/chat/completions", "text/event-stream", "deflate", pieces(pack("deflate", []byte(sse)), 1)},
			{"/openai/v1/chat/completions", "text/event-stream", "br", pieces(pack("br", []byte(sse)), 3)},
		} {
			tenant := fmt.Sprint("t", i)
			x := p.Worker(0).Open(request(row.path, tenant, `{"model":"m","max_tokens":900,"messages":[{"role":"user","content":"hi"}]}`))
			x.Respond(200, false, [2]string{"content-type", row.contentType}, [2]string{"content-encoding", row.encoding})
			for _, c := range row.chunks {
				x.Chunk(c, false)
			}
			x.Chunk(nil, true)
			x.Close()
			if got := used(t, p, tenant); got != 14 {
				t.Errorf("%s: %d tokens count, want 14", row.encoding, got)
			}
		}
	})
}
