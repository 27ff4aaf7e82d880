// SPDX-License-Identifier: Apache-2.0

package filtertest

import "strconv"

// CountAttempts puts the filter into the cluster, too.
func (p *Process) CountAttempts() error {
	for _, w := range p.workers {
		if err := w.vm.configureAttempts(); err != nil {
			return err
		}
	}
	return nil
}

// Attempt has Envoy send the request once more, or for the first time. false: the filter in the cluster has answered in the
// provider's place. As in Envoy, headers and state are those of the stream, and an answer that the filter gives goes straight to the
// caller.
func (x *Exchange) Attempt() (sent bool) {
	x.Attempts++
	x.setProperty("upstream.request_attempt_count", string([]byte{byte(x.Attempts), 0, 0, 0, 0, 0, 0, 0}))
	x.attempt = x.worker.vm.attempt(x)
	held := false
	x.run(func() {
		held = x.attempt.requestHeaders(len(x.Headers))
		if x.Reply == nil && len(x.Body) > 0 {
			held = x.attempt.requestBody(len(x.Body), true) // which lets the headers go, too
		}
	})
	return !held && x.Reply == nil
}

// Fails has the provider answer the attempt. It says whether Envoy may send another.
func (x *Exchange) Fails(status int, headers ...[2]string) (again bool) {
	x.answer = append([][2]string{{":status", strconv.Itoa(status)}}, headers...)
	x.run(func() { x.attempt.responseHeaders(len(x.answer)) })
	x.attempt.done()
	return !has(x.answer, "x-envoy-ratelimited")
}

// attemptCallbacks are those of an attempt.
type attemptCallbacks interface {
	requestHeaders(n int) bool
	requestBody(size int, end bool) bool
	responseHeaders(n int) bool
	done()
}
