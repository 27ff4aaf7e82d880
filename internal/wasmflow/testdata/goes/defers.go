// SPDX-License-Identifier: Apache-2.0

package main

// Here: what is deferred in loops, and panics of the machine's own.

import (
	"fmt"
	"runtime"
)

func deferLoop() any {
	s := 0
	f := func(n int) (r int) {
		for i := 0; ; i++ {
			defer func() {
				r += i
				if x := recover(); x != nil {
					r += 1000
					if i > 2 {
						panic(x)
					}
				}
			}()
			if i == n {
				panic(n)
			}
			if i > 20 {
				return i
			}
		}
	}
	for i := range 30 {
		s = s*3 + f(i)
		s %= 1000003
	}
	return s
}

func deferGoto() any {
	r := ""
	f := func(n int) (s string) {
		i := 0
		defer func() { s += fmt.Sprint("!", recover()) }()
	again:
		if i < n {
			defer func() { s += fmt.Sprint(i) }()
			i++
			if i == 4 {
				goto out
			}
			if i == 3 && n == 3 {
				panic("3")
			}
			goto again
		}
		return "done"
	out:
		runtime.Gosched()
		return "out"
	}
	for n := range 7 {
		r += f(n) + " "
	}
	return r
}

func nilInLoops() any {
	s := 0
	xs := []*t{{1}, {2}, nil, {3}, nil, {4}}
	for range 3 {
		for i := range xs {
			func() {
				defer func() {
					if recover() != nil {
						s += 100
					}
				}()
				for j := i; j < len(xs); j++ {
					s += xs[j].n
				}
			}()
		}
	}
	return s
}

func divides() any {
	out := ""
	for i := -2; i < 3; i++ {
		func() {
			defer func() { out += fmt.Sprint(recover(), " ") }()
			z := i
			out += fmt.Sprint(-1<<63/z, uint8(200)%uint8(z), 1.5/float64(z))
			var m map[string]int
			m["x"] = 1
		}()
	}
	return out
}

func rangeFuncs() any {
	out := ""
	seq := func(yield func(int) bool) {
		for i := range 6 {
			if !yield(i) {
				return
			}
		}
	}
	find := func(x int) (r string) {
		defer func() {
			if p := recover(); p != nil {
				r += fmt.Sprint("p", p)
			}
		}()
	outer:
		for i := range seq {
			defer func() { r += fmt.Sprint("d", i) }()
			for j := range seq {
				if j == 3 {
					continue outer
				}
				if i*j == x {
					return fmt.Sprint(i, j)
				}
				if i+j == x+6 {
					break outer
				}
				if i == 4 && x == 9 {
					panic(i)
				}
			}
		}
		return "none"
	}
	for x := range 12 {
		out += find(x) + " "
	}
	return out
}
