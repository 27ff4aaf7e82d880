// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

var (
	// Shared by all answers: net/http only reads header values.
	jsonType    = []string{"application/json"}
	streamType  = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
	paddingUnit = bytes.Repeat([]byte{' '}, 32<<10)
)

// send sends the answer and says how much output it used.
func (c *call) send() (used int64, err error) {
	if !pause(c.r.Context(), c.fate.delay) {
		return 0, c.r.Context().Err()
	}
	a := newAnswer(c, c.event.At/int64(time.Second))
	if c.event.Stream {
		return c.sendStream(&a)
	}
	c.out = c.ep.json(c.out[:0], &a)
	// Whatever arrives of it, a provider has made the whole answer by now.
	return c.output, c.sendJSON(c.out)
}

// sendJSON sends a JSON answer, padded with white space right after its opening
// brace: what a reader looks for then stands at the end.
func (c *call) sendJSON(answer []byte) error {
	padding := max(0, c.over.bodyBytes-int64(len(answer)))
	if padding == 0 && c.fate.cut != cutMiddle {
		c.finish(c.output, false)
		return writeJSON(c.w, http.StatusOK, answer)
	}
	h := c.w.Header()
	h["Content-Type"] = jsonType
	size := int64(len(answer)) + padding
	h["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	front := io.MultiReader(bytes.NewReader(answer[:1]), &spaces{left: padding})
	if c.fate.cut == cutMiddle {
		return c.sendHalf(io.MultiReader(front, bytes.NewReader(answer[1:])), size/2)
	}
	if _, err := io.Copy(c.w, front); err != nil {
		return err
	}
	c.finish(c.output, false)
	_, err := c.w.Write(answer[1:])
	return err
}

// sendHalf sends the start of an answer, so that it surely leaves.
func (c *call) sendHalf(answer io.Reader, half int64) error {
	if _, err := io.CopyN(c.w, answer, half); err != nil {
		return err
	}
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
	return errCut
}

func (c *call) sendStream(a *answer) (used int64, err error) {
	h := c.w.Header()
	h["Content-Type"] = streamType
	h["Cache-Control"] = noCache
	k := newSink(c.r.Context(), c.w, c.out[:0])
	k.delay, k.cut = c.over.chunkDelay, c.fate.cut == cutMiddle
	k.finish = func(used int64) { c.finish(used, false) }
	if err := k.comment(c.over.bodyBytes); err != nil {
		return 0, err
	}
	err = c.ep.stream(k, a)
	c.out = k.buf
	return k.sent, err
}

// comment pads a stream by a comment, which all clients skip.
func (k *sink) comment(size int64) error {
	if size <= 0 {
		return nil
	}
	if _, err := io.Copy(k.w, io.MultiReader(bytes.NewReader([]byte(":")), &spaces{left: size})); err != nil {
		return err
	}
	return k.send(k.buf[:0].s("\n\n"))
}

// spaces is a reader of white space.
type spaces struct{ left int64 }

func (s *spaces) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), s.left)], paddingUnit)
	s.left -= int64(n)
	return n, nil
}

// writeJSON writes a whole answer at once, with its length.
func writeJSON(w http.ResponseWriter, status int, body []byte) error {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, err := w.Write(body)
	if errors.Is(err, http.ErrBodyNotAllowed) { // HEAD
		return nil
	}
	return err
}
