// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"

	"github.com/weirproxy/weir/policy/queue"
)

// A provider sends one request each turn; a tenant's own limit holds up nobody else.
type provider struct{ left int }

func (p *provider) Try(_ queue.Handle, e queue.Entry) queue.Answer {
	switch {
	case e.Owner == 7: // this tenant has nothing left until 900
		return queue.Skip(900)
	case p.left == 0: // nor has the provider, until 500: the others keep their order
		return queue.Stop(500)
	}
	p.left--
	fmt.Println("sent", e.ID)
	return queue.Sent()
}

func (p *provider) Timeout(_ queue.Handle, e queue.Entry) { fmt.Println("too late for", e.ID) }

func Example() {
	q, err := queue.New(queue.Config{Entries: 100, Bytes: 1 << 20, Discipline: queue.Strict, Classes: make([]queue.Class, 2)})
	if err != nil {
		panic(err)
	}
	const interactive, batch = 0, 1
	q.Push(0, queue.Entry{ID: 1, Class: batch, Bytes: 300, Deadline: 2000}, 0)
	q.Push(1, queue.Entry{ID: 2, Class: interactive, Owner: 7, Bytes: 500, Deadline: 800}, 0)
	q.Push(2, queue.Entry{ID: 3, Class: interactive, Owner: 8, Bytes: 500, Deadline: 2000}, 0)
	_, out := q.Push(3, queue.Entry{ID: 4, Class: batch, Deadline: 50}, 100)
	fmt.Println(out)
	fmt.Println("again at", q.Turn(10, &provider{left: 1}))
	fmt.Println("again at", q.Turn(500, &provider{left: 1}))
	q.Turn(800, &provider{})
	// Output:
	// queue_timeout
	// sent 3
	// again at 500
	// sent 1
	// again at 800
	// too late for 2
}
