// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// largeBody is a chat request whose one message is size bytes long.
func largeBody(size int64) io.Reader {
	return io.MultiReader(strings.NewReader(`{"model":"big","max_tokens":5,"messages":[{"role":"user","content":"`),
		&spaces{left: size}, strings.NewReader(`"}]}`))
}

// A body of 100 MB goes through without being held, and is hashed and counted.
func TestLargeBody(t *testing.T) {
	const size = 100 << 20
	s, _ := newMock(t, Config{})
	h := sha256.New()
	total, _ := io.Copy(h, largeBody(size))
	r := httptest.NewRequest("POST", "/v1/chat/completions", io.NopCloser(largeBody(size)))
	w := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	wantStatus(t, w, 200)
	// The head grows up to 8 MiB by doubling, so it takes a few times as much.
	if n := after.TotalAlloc - before.TotalAlloc; n > 5*parseCap {
		t.Errorf("%d bytes allocated", n)
	}
	e := lastEvent(t, s)
	if e.Model != "big" || e.BodyBytes != total || e.BodySHA256 != hex.EncodeToString(h.Sum(nil)) || e.Input != (total+3)/4 {
		t.Errorf("%+v, want %d bytes", e, total)
	}
}

func TestReadBodyBoundaries(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, parseCap - 1, parseCap, parseCap + 1} {
		text := strings.Repeat("x", size)
		b, err := readBody(iotest.HalfReader(strings.NewReader(text)), make([]byte, 0, 16), true)
		if err != nil || b.size != int64(size) || len(b.head) != min(size, parseCap) {
			t.Errorf("%d: size %d head %d, %v", size, b.size, len(b.head), err)
		}
		sum := sha256.Sum256([]byte(text))
		if want := hex.EncodeToString(sum[:]); b.sum != want && size > 0 || size == 0 && b.sum != "" {
			t.Errorf("%d: sum %s", size, b.sum)
		}
	}
	_, err := readBody(iotest.ErrReader(io.ErrUnexpectedEOF), nil, true)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestCompressedBodyCountsByLength(t *testing.T) {
	s, _ := newMock(t, Config{})
	wantStatus(t, do(s, "POST", "/v1/chat/completions", "\x28\xb5\x2f\xfd.....", "Content-Encoding: zstd"), 200)
	if e := lastEvent(t, s); e.Input != 3 || e.Reserved != 3+256 {
		t.Errorf("%+v", e)
	}
}

// Delays are real timers, so they are tested in a bubble with its own time.
func TestDelays(t *testing.T) {
	slow, _ := ParseFail("slow:2s:1")
	rows := []struct {
		name    string
		config  Config
		headers []string
		want    time.Duration
	}{
		{"none", Config{}, nil, 0},
		{"config", Config{Latency: time.Second}, nil, time.Second},
		{"slow adds", Config{Latency: time.Second, Fail: slow}, nil, 3 * time.Second},
		{"header replaces", Config{Latency: time.Second, Fail: slow}, []string{"X-Mock-Latency: 5ms"}, 5 * time.Millisecond},
		{"before a failure", Config{Latency: time.Second}, []string{"X-Mock-Status: 503"}, time.Second},
		{"not before a refusal", Config{Latency: time.Second, TPM: 1}, nil, 0},
		{"between chunks", Config{}, []string{"X-Mock-Chunks: 5", "X-Mock-Chunk-Delay: 10ms"}, 40 * time.Millisecond},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				row.config.Now = time.Now
				s, _ := newMock(t, row.config)
				start := time.Now()
				do(s, "POST", "/v1/chat/completions", tenStreamed, row.headers...)
				if got := time.Since(start); got != row.want {
					t.Errorf("%v, want %v", got, row.want)
				}
				if e := lastEvent(t, s); e.End-e.At != int64(row.want) && e.Outcome != Failed {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}
