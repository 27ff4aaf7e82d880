// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/weirproxy/weir/policy/sim"
)

// A frame is what of a plane a chart shows.
type frame struct{ x0, x1, y0, y1 float64 }

func frameOf(c sim.Chart) frame {
	f := frame{x0: math.Inf(1), x1: math.Inf(-1), y0: 0, y1: 0}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			f.x0, f.x1 = min(f.x0, p.X), max(f.x1, p.X)
			f.y0, f.y1 = min(f.y0, p.Y), max(f.y1, p.Y)
		}
	}
	if f.x0 > 0 && f.x0 < (f.x1-f.x0)/2 { // begin at 0 where that costs little
		f.x0 = 0
	}
	return f
}

func (f frame) empty() bool { return !(f.x1 > f.x0) || !(f.y1 > f.y0) }

const sparkWidth = 60

// sparks draws each line as one row of blocks, all on one scale: it says when and how much, not exactly.
func sparks(c sim.Chart) string {
	f := frameOf(c)
	if f.empty() {
		return ""
	}
	name := 0
	for _, l := range c.Lines {
		name = max(name, utf8.RuneCountInString(l.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s from %s to %s)\n", c.Title, c.Y, number(f.y0), number(f.y1))
	for _, l := range c.Lines {
		b.WriteString(l.Name + strings.Repeat(" ", name-utf8.RuneCountInString(l.Name)) + " ")
		b.WriteString(strings.TrimRight(spark(l, f), " ") + "\n")
	}
	from, to := number(f.x0)+" "+c.X, number(f.x1)+" "+c.X
	fmt.Fprintf(&b, "%*s%s%*s\n", name+1, "", from, sparkWidth-len(from), to)
	return b.String()
}

var blocks = []rune(" ▁▂▃▄▅▆▇█")

// spark draws one line: in each column the last value up to it, nothing after the last.
func spark(l sim.Line, f frame) string {
	var b strings.Builder
	at := 0
	for i := range sparkWidth {
		to := f.x0 + (f.x1-f.x0)*float64(i+1)/sparkWidth
		for at < len(l.Points) && l.Points[at].X <= to {
			at++
		}
		switch {
		case at == 0 || at == len(l.Points) && l.Points[at-1].X < to-(f.x1-f.x0)/sparkWidth:
			b.WriteByte(' ')
		default:
			y := (l.Points[at-1].Y - f.y0) / (f.y1 - f.y0)
			b.WriteRune(blocks[int(math.Round(y*float64(len(blocks)-1)))])
		}
	}
	return b.String()
}

// number writes a number of an axis.
func number(f float64) string {
	switch a := math.Abs(f); {
	case a >= 1e6:
		return fmt.Sprintf("%.4gM", f/1e6)
	case a >= 10_000:
		return fmt.Sprintf("%.4gk", f/1e3)
	}
	return fmt.Sprintf("%.4g", f)
}
