// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// An openLoad is clients that ask at times of their own, however long answers take: one connection each, which stay for all phases.
type openLoad struct {
	e       *pushEnvoy
	clients []*http.Client
	next    int // user
}

func (e *pushEnvoy) openLoad() *openLoad {
	l := &openLoad{e: e}
	for range pushClients {
		l.clients = append(l.clients, newClient(1))
	}
	return l
}

func (l *openLoad) close() {
	for _, c := range l.clients {
		c.CloseIdleConnections()
	}
}

// measure asks for a while. What a call takes counts from when it was due, where the one before it was not done by then.
func (l *openLoad) measure(ctx context.Context, length time.Duration) (times []time.Duration, err error) {
	body := usualChat()
	var all sync.WaitGroup
	var mu sync.Mutex
	started := time.Now()
	for w, client := range l.clients {
		all.Go(func() {
			mine, failed := []time.Duration(nil), error(nil)
			due := started.Add(exponential(pushLoad / pushClients))
			for user := w; failed == nil && due.Sub(started) < length; user += pushClients {
				wait := time.Until(due)
				time.Sleep(wait)
				late := max(-wait, 0)
				var a answer
				a, failed = sendOK(ctx, client, l.e.addr, userCall((l.next+user)%pushUsers, body))
				mine = append(mine, a.total+late)
				due = due.Add(exponential(pushLoad / pushClients))
			}
			mu.Lock()
			defer mu.Unlock()
			times, err = append(times, mine...), cmp.Or(err, failed)
		})
	}
	all.Wait()
	l.next += len(times)
	return times, err
}

// exponential is how long it is until the next of so many calls a second that know nothing of each other: in step with pushes they
// would meet all of them, or none.
func exponential(perSecond float64) time.Duration {
	return time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second))
}
