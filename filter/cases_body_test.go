// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/filter/filtertest"
)

// A caseGen is a body with a unit many times over in it.
type caseGen struct {
	Template, Unit string
	Count          int
}

// A casePacked is such a body, compressed.
type casePacked struct {
	Algo, Unit string
	Count      int
}

// A caseBody gives the pieces of a body; long ones are made as they are sent.
type caseBody struct {
	pieces [][]byte
	gen    *caseGen
	size   int64
}

const (
	caseGenMark   = "{{GEN}}"
	casePieceSize = 64 << 10
)

// body is what a request sends; nil if it has none.
func (r *caseRequest) body() (b *caseBody, err error) {
	one := func(p []byte) (*caseBody, error) { return &caseBody{pieces: [][]byte{p}, size: int64(len(p))}, nil }
	switch {
	case r.BodyGen != nil:
		if strings.Count(r.BodyGen.Template, caseGenMark) != 1 {
			return nil, fmt.Errorf("body_gen without one %s", caseGenMark)
		}
		n := len(r.BodyGen.Template) - len(caseGenMark) + len(r.BodyGen.Unit)*r.BodyGen.Count
		return &caseBody{gen: r.BodyGen, size: int64(n)}, nil
	case r.BodyB64Gen != nil:
		p, err := r.BodyB64Gen.pack()
		return &caseBody{pieces: [][]byte{p}, size: int64(len(p))}, err
	case r.BodyB64 != nil:
		return one(r.BodyB64)
	case r.BodyText != nil:
		return one([]byte(*r.BodyText))
	case r.BodyChunks != nil:
		b = new(caseBody)
		for _, c := range r.BodyChunks {
			b.pieces, b.size = append(b.pieces, []byte(c)), b.size+int64(len(c))
		}
		return b, nil
	case r.Body != nil:
		var compact bytes.Buffer
		err := json.Compact(&compact, r.Body)
		return &caseBody{pieces: [][]byte{compact.Bytes()}, size: int64(compact.Len())}, err
	}
	return nil, nil
}

func (p *casePacked) pack() ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch p.Algo {
	case "gzip":
		w, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	case "deflate":
		w = zlib.NewWriter(&out)
	default:
		return nil, fmt.Errorf("body_b64_gen with the unknown algorithm %q", p.Algo)
	}
	in := caseBody{gen: &caseGen{Template: caseGenMark, Unit: p.Unit, Count: p.Count}}
	in.each(func(piece []byte, _ bool) { _, _ = w.Write(piece) })
	return out.Bytes(), w.Close()
}

// each calls f with the pieces.
func (b *caseBody) each(f func(piece []byte, end bool)) {
	if b.gen == nil {
		for i, p := range b.pieces {
			f(p, i == len(b.pieces)-1)
		}
		return
	}
	head, tail, _ := strings.Cut(b.gen.Template, caseGenMark)
	per := min(max(casePieceSize/max(len(b.gen.Unit), 1), 1), b.gen.Count)
	piece := []byte(strings.Repeat(b.gen.Unit, per))
	f([]byte(head), false)
	left := b.gen.Count
	for ; left > per; left -= per {
		f(piece, false)
	}
	f([]byte(strings.Repeat(b.gen.Unit, left)+tail), true)
}

// bytes is the whole body.
func (b *caseBody) bytes() (all []byte) {
	b.each(func(p []byte, _ bool) { all = append(all, p...) })
	return all
}

// send sends a request as far as it goes. What is longer than keep is not kept as it leaves.
func (r *caseRequest) send(w *filtertest.Worker, b *caseBody, headers [][2]string) *filtertest.Exchange {
	const keep = 1 << 20
	q := filtertest.Request{Method: r.Method, Path: r.Path, Headers: headers}
	if b == nil {
		return w.Open(q)
	}
	q.Chunks, q.Forget = [][]byte{}, b.size > keep
	if r.Headers["content-length"] == "" && r.Headers["transfer-encoding"] == "" {
		q.Headers = append(q.Headers, [2]string{"content-length", strconv.FormatInt(b.size, 10)})
	}
	x := w.Start(q)
	b.each(func(piece []byte, end bool) { x.SendBody(piece, end) })
	return x
}

// pieces are those in which a response comes.
func (r *caseResponse) pieces() ([][]byte, error) {
	switch {
	case r.BodyChunksB64 != nil:
		return r.BodyChunksB64, nil
	case r.BodyChunks != nil:
		return asBytes(r.BodyChunks), nil
	case r.BodyText != nil && r.Callbacks != nil:
		var out [][]byte
		text, from := *r.BodyText, 0
		for i, c := range r.Callbacks { // how much has come at each; the last one has all that is left
			to := min(c.Size, len(text))
			if i == len(r.Callbacks)-1 {
				to = len(text)
			}
			out, from = append(out, []byte(text[from:max(to, from)])), max(to, from)
		}
		return out, nil
	case r.BodyText != nil:
		n := len(*r.BodyText)
		if r.BodySplit != "" {
			if _, err := fmt.Sscanf(r.BodySplit, "%d byte", &n); err != nil || n < 1 {
				return nil, fmt.Errorf("unknown body_split %q", r.BodySplit)
			}
		}
		return pieces([]byte(*r.BodyText), max(n, 1)), nil
	}
	b, err := (&caseRequest{Body: r.Body, BodyB64: r.BodyB64, BodyGen: r.BodyGen}).body()
	return b.list(), err
}

// list is all pieces at once.
func (b *caseBody) list() (out [][]byte) {
	if b != nil {
		b.each(func(p []byte, _ bool) { out = append(out, bytes.Clone(p)) })
	}
	return out
}

func asBytes(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}
