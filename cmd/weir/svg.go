// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"

	"github.com/weirproxy/weir/policy/sim"
)

// Size of one chart of an SVG, in pixels.
const (
	svgWidth, svgHeight         = 820, 300
	plotLeft, plotTop           = 70, 34
	plotWidth, plotHeight       = 520, 220
	legendLeft, legendLine      = plotLeft + plotWidth + 16, 18
	svgFont                     = "font-family='sans-serif' font-size='12'"
	axisColour, gridColour, ink = "#888", "#e4e4e4", "#222"
)

// colours can be told apart by most people who see red and green alike (Okabe and Ito, 2008), and then again as dashes.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// svgOf draws charts below each other.
func svgOf(charts []sim.Chart) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' %s fill='%s'>\n", svgWidth, max(len(charts), 1)*svgHeight, svgFont, ink)
	b.WriteString("<rect width='100%' height='100%' fill='white'/>\n")
	for i, c := range charts {
		fmt.Fprintf(&b, "<g transform='translate(0 %d)'>\n", i*svgHeight)
		svgChart(&b, c)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func svgChart(b *bytes.Buffer, c sim.Chart) {
	svgText(b, plotLeft, 20, "start", c.Title+" ("+c.Y+")")
	f := frameOf(c)
	if f.empty() {
		svgText(b, plotLeft, plotTop+20, "start", "nothing to show")
		return
	}
	x := func(v float64) float64 { return plotLeft + (v-f.x0)/(f.x1-f.x0)*plotWidth }
	y := func(v float64) float64 { return plotTop + plotHeight - (v-f.y0)/(f.y1-f.y0)*plotHeight }
	for _, v := range ticks(f.y0, f.y1) {
		fmt.Fprintf(b, "<path d='M%d %.1fH%d' stroke='%s'/>\n", plotLeft, y(v), plotLeft+plotWidth, gridColour)
		svgText(b, plotLeft-6, y(v)+4, "end", number(v))
	}
	for _, v := range ticks(f.x0, f.x1) {
		svgText(b, x(v), plotTop+plotHeight+16, "middle", number(v))
	}
	fmt.Fprintf(b, "<path d='M%d %dV%dH%d' fill='none' stroke='%s'/>\n", plotLeft, plotTop, plotTop+plotHeight, plotLeft+plotWidth, axisColour)
	svgText(b, plotLeft+plotWidth, plotTop+plotHeight+32, "end", c.X)
	for i, l := range c.Lines {
		svgLine(b, i, l, x, y)
	}
}

// ticks gives the round numbers of an axis: 4 to 11 of them.
func ticks(from, to float64) (at []float64) {
	step := math.Pow(10, math.Floor(math.Log10((to-from)/4)))
	for _, n := range []float64{5, 2} {
		if (to-from)/(n*step) >= 4 {
			step *= n
			break
		}
	}
	for i := math.Ceil(from / step); i*step <= to*(1+1e-9); i++ {
		at = append(at, i*step)
	}
	return at
}

func svgLine(b *bytes.Buffer, i int, l sim.Line, x, y func(float64) float64) {
	dash := ""
	if i >= len(colours) {
		dash = " stroke-dasharray='5 3'"
	}
	style := fmt.Sprintf("fill='none' stroke='%s' stroke-width='1.6'%s", colours[i%len(colours)], dash)
	b.WriteString("<polyline " + style + " points='")
	for k, p := range l.Points {
		if k > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", x(p.X), y(p.Y))
	}
	top := float64(plotTop + i*legendLine)
	fmt.Fprintf(b, "'/>\n<path d='M%d %.1fh18' %s/>\n", legendLeft, top, style)
	svgText(b, legendLeft+24, top+4, "start", l.Name)
}

func svgText[T int | float64](b *bytes.Buffer, x T, y float64, anchor, text string) {
	fmt.Fprintf(b, "<text x='%.1f' y='%.1f' text-anchor='%s'>", float64(x), y, anchor)
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
	b.WriteString("</text>\n")
}
