// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

// Callers that come for the first time are let in, however many of them there are.
func TestManyNewUsers(t *testing.T) {
	w := newMesh(t, 1, 2, `apiVersion: weir/v1
trust: [all]
who: {user: [header x-user]}
providers:
  openai: {upstream: "http://127.0.0.1:1", models: {"*": {tpm: 300_000_000}}}
limits:
  user: {default: {tpm: 20_000, rpm: 60}}
slots: {user: 131_072}
`)
	for _, e := range w.envoys {
		e.rate = 0
	}
	w.run(time.Second)
	posts, sent := w.envoys[0].Posts, 0
	const users, perStep, seconds = 2500, 2, 13
	var open []*filtertest.Exchange
	for n := 0; n < users; w.run(time.Duration(worldStep)) {
		for range perStep {
			r := chatOf("gpt-4o", 100)
			r.Headers[2][1] = fmt.Sprint("user", n)
			open = append(open, w.envoys[0].Worker(n%2).Open(r))
			n++
		}
	}
	w.run(time.Second)
	for _, x := range open {
		if x.Sent {
			sent++
		} else if x.Reply != nil && sent > users/2 {
			t.Log(x.Reply.Body)
		}
		x.Close()
	}
	if posts = w.envoys[0].Posts - posts; sent < users*99/100 || posts > 4*seconds+6 {
		t.Errorf("%d of %d first calls were sent, with %d messages", sent, users, posts)
	}
}
