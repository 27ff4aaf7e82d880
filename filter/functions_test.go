// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/filter/filtertest"
)

var update = flag.Bool("update", false, "write wasm/order.txt anew")

const orderFile = "wasm/order.txt"

// The functions that a usual request runs through lie together in the filter, in the order in which they are called: nearly all of them
// are in the list. make profile writes it anew.
func TestOrderOfFunctions(t *testing.T) {
	called := callsOf(t)
	if *update {
		if err := os.WriteFile(orderFile, []byte(strings.Join(called, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(orderFile)
	if err != nil {
		t.Fatal(err)
	}
	listed, missing := strings.Fields(string(b)), []string{}
	for _, name := range called {
		if !slices.Contains(listed, name) {
			missing = append(missing, name)
		}
	}
	if len(called) < 100 || len(missing) > len(called)/5 {
		t.Errorf("of %d functions these are not in %s: %v\nmake profile writes it anew", len(called), orderFile, missing)
	}
}

// callsOf are the functions of usual requests, those of most of them first.
func callsOf(t *testing.T) []string {
	calls := &callCount{last: map[string]int{}, requests: map[string]int{}}
	m, err := built(func(file string) (*filtertest.Module, error) { return filtertest.Trace(file, calls.note) }, "-names")
	if err != nil {
		t.Fatal(err)
	}
	p := process(t, m, 1, benchPolicy)
	if err := p.CountAttempts(); err != nil {
		t.Fatal(err)
	}
	h := newStillHost(2)
	for n := range 400 {
		calls.now = n - 200 // the first ones teach
		x := p.Worker(0).Start(filtertest.Request{Path: "/v1/chat/completions", Headers: h.request[4:], Body: h.body})
		x.SendBody(h.body, true)
		x.Attempt()
		x.Fails(200)
		x.Respond(200, false, h.answer[1:]...)
		x.Chunk(h.chunk, false)
		x.Chunk(nil, true)
		x.Close()
		p.Sleep(time.Millisecond)
	}
	slices.SortStableFunc(calls.order, func(a, b string) int { return cmp.Compare(calls.rare(a), calls.rare(b)) })
	return calls.order
}

// A callCount counts in how many requests functions are called.
type callCount struct {
	now      int // from 1 on it counts
	order    []string
	last     map[string]int
	requests map[string]int
}

func (c *callCount) note(name string) {
	if c.now <= 0 || c.last[name] == c.now {
		return
	}
	if c.requests[name]++; c.requests[name] == 1 {
		c.order = append(c.order, name)
	}
	c.last[name] = c.now
}

func (c *callCount) rare(name string) int {
	if c.requests[name] > c.now/2 {
		return 0
	}
	return 1
}
