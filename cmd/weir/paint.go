// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
)

// A paint colours words, on a terminal whose user has nothing against it (https://no-color.org).
type paint bool

func newPaint(w io.Writer) paint { return paint(isTerminal(w) && os.Getenv("NO_COLOR") == "") }

func (p paint) red(s string) string    { return p.in("31", s) }
func (p paint) green(s string) string  { return p.in("32", s) }
func (p paint) yellow(s string) string { return p.in("33", s) }
func (p paint) bold(s string) string   { return p.in("1", s) }

func (p paint) in(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
