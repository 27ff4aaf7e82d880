// SPDX-License-Identifier: Apache-2.0

package main

// Here: panics and what recovers them, in loops.

import (
	"fmt"
	"runtime"
)

func recovers() any {
	out := []string{}
	for i := range 20 {
		func() (r string) {
			defer func() { out = append(out, r) }()
			for j := range 10 {
				defer func() {
					if x := recover(); x != nil {
						r += fmt.Sprint("r", j, x)
						if j%3 == 1 {
							runtime.Gosched()
							panic(fmt.Sprint("again", j))
						}
					}
				}()
				if j > 3 && i%7 == j%7 {
					runtime.Gosched()
					panic(i)
				}
			}
			return "ok"
		}()
	}
	return out
}

func frames() any {
	var down func(n int) int
	down = func(n int) int {
		defer func() { sink = n }()
		if n == 0 {
			var p *int
			return *p
		}
		s := 0
		for i := range 3 {
			s += i
			if i == 1 {
				s += down(n - 1)
			}
		}
		return s
	}
	r := ""
	for _, n := range []int{1, 10, 100, 1000} {
		func() {
			defer func() { r += fmt.Sprint(recover(), sink, ";") }()
			down(n)
		}()
	}
	return r
}

func goexits() any {
	out := make(chan string, 40)
	for i := range 6 {
		go func() {
			r := ""
			defer func() { out <- r }()
			for j := range 4 {
				defer func() { r += fmt.Sprint(j, recover()); runtime.Gosched() }()
				if j == i {
					func() {
						defer func() {
							defer func() { r += fmt.Sprint("q", recover()) }()
							if i%2 == 0 {
								panic("in exit")
							}
						}()
						runtime.Goexit()
					}()
				}
			}
		}()
	}
	got := map[string]bool{}
	for range 6 {
		got[<-out] = true
	}
	return got
}

func repanics() any {
	out := ""
	for i := range 4 {
		func() {
			defer func() { out += fmt.Sprint(recover(), ";") }()
			defer func() {
				if i == 2 {
					recover()
				}
				panic(fmt.Sprint("second", i))
			}()
			defer func() {
				defer func() { out += fmt.Sprint(recover()) }()
				panic("third")
			}()
			if i > 0 {
				panic("first")
			}
		}()
	}
	return out
}

func nestedDefers() (r any) {
	s := ""
	defer func() { r = s }()
	for i := range 3 {
		defer func() {
			for j := range 3 {
				func() {
					defer func() { s += fmt.Sprint(i, j, recover(), " ") }()
					if j == i {
						panic(j)
					}
					runtime.Gosched()
				}()
			}
		}()
	}
	return nil
}

func named(n int) (a int, b string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
			a *= 2
		}
	}()
	for i := range n {
		a += i
		b += "x"
		if i == 5 {
			sink = []int{1}[a]
		}
	}
	return a, b, nil
}

func openDefers() any { // up to 8 of them, by bits
	out := ""
	for n := range 8 {
		out += fmt.Sprint(named(n))
		func() {
			defer func() { out += fmt.Sprint("a", recover()) }()
			if n&1 > 0 {
				defer func() { out += "b" }()
			}
			if n&2 > 0 {
				defer func() { out += fmt.Sprint("c", recover()); runtime.Gosched() }()
			}
			if n&4 > 0 {
				panic(n)
			}
			out += "!"
		}()
	}
	return out
}
