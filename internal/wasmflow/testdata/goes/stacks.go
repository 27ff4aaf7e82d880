// SPDX-License-Identifier: Apache-2.0

package main

// Here: stacks that grow within loops, and what they say of themselves.

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

func grow(n int, b [40]int) int {
	b[n%40] += n
	if n == 0 {
		return b[3]
	}
	return grow(n-1, b) + b[n%40]
}

func grows() any {
	total := 0
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 30 {
				var b [40]int
				total += grow(i*20+k, b)
				if i%4 == 0 {
					runtime.Gosched()
				}
				if i%10 == 9 {
					runtime.GC()
				}
			}
		}()
	}
	wg.Wait()
	return total
}

// the stack grows in the middle of a loop with live values
func growMid() any {
	res := make(chan string)
	for k := range 4 {
		go func() {
			s, f := 0, 1.5
			str := ""
			for i := 0; i < 12; i++ {
				for j := i; j < 12; j += 2 {
					var b [40]int
					s += grow(1<<uint(j%10), b)
					f = f*1.25 + float64(s%7)
					if j%5 == k {
						str += fmt.Sprint(j)
						continue
					}
					if j == 11 {
						break
					}
				}
			}
			res <- fmt.Sprint(k, s, f, str)
		}()
	}
	got := map[string]bool{}
	for range 4 {
		got[<-res] = true
	}
	return got
}

func bigFrame(n int) int {
	var a [3000]int
	for i := range a {
		a[i] = i * n
	}
	if n > 0 {
		return bigFrame(n-1) + a[2999]
	}
	return a[17]
}

func bigFrames() any {
	c := make(chan int)
	for i := range 3 {
		go func() { c <- bigFrame(i * 20) }()
	}
	return <-c + <-c + <-c
}

//go:noinline
func where(depth int) string {
	var b strings.Builder
	pcs := make([]uintptr, 10)
	n := runtime.Callers(1, pcs)
	fs := runtime.CallersFrames(pcs[:n])
	for {
		f, more := fs.Next()
		fmt.Fprintf(&b, "%s:%d ", f.Function, f.Line)
		if !more {
			return b.String()
		}
	}
}

func inl(i int) string {
	if i%2 == 0 {
		return where(i)
	}
	return "-"
}

func callers() any {
	out := ""
	for i := range 4 {
		out += inl(i)
		for j := range 2 {
			if j == 1 {
				out += where(j)
			}
			defer func() { sink = where(j) }()
		}
	}
	return out
}

func stackTrace() any {
	out := ""
	for i := range 3 {
		func() {
			defer func() {
				recover()
				for _, l := range strings.Split(string(debug.Stack()), "\n") {
					if j := strings.LastIndex(l, "/"); strings.HasPrefix(l, "\t") && j > 0 {
						out += strings.Fields(l[j:])[0] + " "
					}
				}
			}()
			var p *t
			for k := range 4 {
				if k == i {
					sink = p.n
				}
			}
		}()
	}
	return out
}
