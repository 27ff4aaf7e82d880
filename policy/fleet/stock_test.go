// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"pgregory.net/rapid"
)

// A stockRun is a stock and some nodes, whose messages are lost, doubled and reordered, and which crash.
type stockRun struct {
	t       *rapid.T
	s       *Stock
	total   int64
	now     int64
	stashes []*Stash
	lives   []uint64
	used    int64 // admitted, by all lives
	usedBy  map[stockLife]int64
	lost    int64 // with lives that ended
	draws   []*Draw
	chunks  []flyingChunk
}

type stockLife struct {
	node string
	life uint64
}

type flyingChunk struct {
	to int
	c  *Chunk
}

func (x *stockRun) step() {
	t := x.t
	x.now += rapid.OneOf(rapid.Int64Range(1, second), rapid.Int64Range(1, 100*second)).Draw(t, "dt")
	i := rapid.IntRange(0, len(x.stashes)-1).Draw(t, "node")
	switch rapid.SampledFrom([]string{"take", "take", "take", "draw", "draw", "deliver", "deliver", "deliver", "give", "give", "give", "crash", "release"}).Draw(t, "what") {
	case "take":
		if n := rapid.Int64Range(1, 50).Draw(t, "units"); x.stashes[i].Take(x.now, n) {
			x.used += n
			x.usedBy[stockLife{x.stashes[i].node, x.lives[i]}] += n
		}
	case "draw":
		x.draws = append(x.draws, x.stashes[i].Draw(x.now))
	case "deliver":
		if len(x.draws) > 0 {
			d := rapid.SampledFrom(x.draws).Draw(t, "draw")
			if c := x.deliver(d); c != nil {
				x.chunks = append(x.chunks, flyingChunk{int(d.Node[0] - 'a'), c})
			}
		}
	case "give":
		if len(x.chunks) > 0 {
			f := rapid.SampledFrom(x.chunks).Draw(t, "chunk")
			x.stashes[f.to].Give(x.now, f.c)
		}
	case "release":
		x.stashes[i].Release()
	case "crash":
		x.start(i)
	}
}

// deliver brings a draw to the stock. If it is the first of a new life, what the one before had and did not use is lost: a
// chunk at most.
func (x *stockRun) deliver(d *Draw) *Chunk {
	if n := x.s.nodes[d.Node]; n != nil && d.Incarnation > n.incarnation {
		lost := n.given - n.returned - x.usedBy[stockLife{d.Node, n.incarnation}]
		if lost > max(x.total/chunkPart, 50) {
			x.t.Fatalf("%d lost with one life, of %d", lost, x.total)
		}
		x.lost += lost
	}
	return x.s.Draw(x.now, d)
}

func (x *stockRun) start(i int) {
	x.lives[i]++
	x.stashes[i] = NewStash(string(rune('a'+i)), x.lives[i], "k")
}

// Never more than there is, whatever is lost; and nothing is lost but with a crash, a chunk each time.
func TestStock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &stockRun{t: t, total: rapid.Int64Range(0, 2000).Draw(t, "total"), now: second}
		x.usedBy = map[stockLife]int64{}
		x.s = NewStock("k", x.total, DefaultParams())
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			x.stashes, x.lives = append(x.stashes, nil), append(x.lives, 0)
			x.start(i)
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			x.step()
			if x.used > x.total || x.s.Left() < 0 {
				t.Fatalf("%d used of %d, %d left", x.used, x.total, x.s.Left())
			}
		}
		for _, s := range x.stashes { // all give back, and the messages come
			for range 2 {
				if c := x.deliver(s.Draw(x.now)); c != nil {
					s.Give(x.now, c)
				}
				s.Release()
			}
			last := s.Draw(x.now)
			x.deliver(last)
			n := x.s.nodes[s.node]
			x.lost += n.given - n.returned - n.used // what this last draw was answered with
		}
		if x.used+x.s.Left()+x.lost != x.total {
			t.Fatalf("%d used, %d left, %d lost with crashes, of %d", x.used, x.s.Left(), x.lost, x.total)
		}
	})
}

// A chunk is a quarter of the node's part of what is left or a minute's worth, at least what the call needs, at least one.
func TestChunk(t *testing.T) {
	for _, c := range []struct{ left, demand, want, others, chunk int64 }{
		{1000, 10_000, 0, 0, 250},
		{1000, 10_000, 0, 4, 50},
		{1000, 30, 0, 0, 30},
		{1000, 0, 0, 0, 1},
		{1000, 0, 400, 0, 400},
		{3, 100, 1, 4, 1},
		{0, 100, 1, 0, 0},
		{300, 0, 400, 0, 300},
	} {
		s := NewStock("k", c.left, DefaultParams())
		for i := range c.others {
			s.nodes[string(rune('b'+i))] = &drawer{incarnation: 1, seen: second}
		}
		if got := s.Draw(second, &Draw{Node: "a", Incarnation: 1, Number: 1, Demand: c.demand, Want: c.want}); got.Given != c.chunk {
			t.Errorf("%+v: got %d", c, got.Given)
		}
	}
}

// A draw that comes twice, or late, gets no answer.
func TestOldDraws(t *testing.T) {
	s := NewStock("k", 100, DefaultParams())
	s.Draw(second, &Draw{Node: "a", Incarnation: 2, Number: 5, Want: 3})
	for _, d := range []Draw{{Node: "a", Incarnation: 2, Number: 5}, {Node: "a", Incarnation: 2, Number: 4}, {Node: "a", Incarnation: 1, Number: 9}} {
		if c := s.Draw(second, &d); c != nil {
			t.Errorf("%+v gets %+v", d, c)
		}
	}
}
