// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// chatBody is a chat request of about size bytes.
func chatBody(size int) string {
	return `{"model":"m","max_tokens":50,"messages":[{"role":"system","content":"` +
		strings.Repeat("Be kind to all. ", size/16) + `"},{"role":"user","content":"hi\n"}]}`
}

// nullWriter is a ResponseWriter without a network.
type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

// BenchmarkHandler is the mock without net/http around it.
func BenchmarkHandler(b *testing.B) {
	for _, limited := range []bool{false, true} {
		b.Run(fmt.Sprintf("limited=%v", limited), func(b *testing.B) {
			c := Config{}
			if limited {
				c = Config{RPM: maxTokens, TPM: maxTokens}
			}
			s, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			body := chatBody(2000)
			r := httptest.NewRequest("POST", "/v1/chat/completions", nil)
			r.Header.Set("Authorization", "Bearer key")
			r.Header.Set("Content-Type", "application/json")
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(strings.NewReader(body))
				s.ServeHTTP(nullWriter{h: http.Header{}}, r)
			}
		})
	}
}

// BenchmarkLoopback answers over connections that stay open; the client side is
// as thin as it can be, so that the figure is nearly the server's.
func BenchmarkLoopback(b *testing.B) {
	for _, size := range []int{100, 2000} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			s, err := New(Config{RPM: maxTokens, TPM: maxTokens})
			if err != nil {
				b.Fatal(err)
			}
			ln, srv, err := s.Listen("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go srv.Serve(ln)
			defer srv.Close()
			body := chatBody(size)
			request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) { loop(b, pb, ln.Addr().String(), request) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}

func loop(b *testing.B, pb *testing.PB, addr, request string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for pb.Next() {
		io.WriteString(conn, request)
		if err := skipAnswer(in); err != nil {
			b.Error(err)
			return
		}
	}
}

// skipAnswer reads over one answer that has a Content-Length.
func skipAnswer(in *bufio.Reader) error {
	size := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if rest, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			fmt.Sscan(rest, &size)
		}
	}
	_, err := in.Discard(size)
	return err
}
