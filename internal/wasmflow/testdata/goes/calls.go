// SPDX-License-Identifier: Apache-2.0

package main

// Here: calls by values, timers, finalizers and coroutines.

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"time"
)

type t struct{ n int }

func (x *t) add(k int) int { x.n += k; runtime.Gosched(); return x.n }

func (x t) value(k int) int { runtime.Gosched(); return x.n * k }

type adder interface{ add(int) int }

func closures() any {
	x := &t{1}
	f, g, h := x.add, (*t).add, t.value
	var i adder = x
	k := i.add
	s := 0
	for j := range 10 {
		s += f(j) + g(x, j) + h(*x, j) + k(j) + i.add(1)
	}
	var fs []func() int
	for j := range 5 {
		fs = append(fs, func() int { s += j; runtime.Gosched(); return s })
	}
	for _, f := range fs {
		s += f()
	}
	return s
}

func many(a int, b string, c float64, d ...any) (string, error) {
	runtime.Gosched()
	if a == 3 {
		panic("three")
	}
	var big [40]int
	return fmt.Sprint(a, b, c, d, grow(50, big)), errors.New("e")
}

func reflects() any {
	out := ""
	for i := range 5 {
		func() {
			defer func() {
				if r := recover(); r != nil {
					out += fmt.Sprint(r)
				}
			}()
			r := reflect.ValueOf(many).Call([]reflect.Value{reflect.ValueOf(i), reflect.ValueOf("x"), reflect.ValueOf(1.5), reflect.ValueOf(i)})
			out += fmt.Sprint(r[0], r[1])
		}()
	}
	swap := reflect.MakeFunc(reflect.TypeFor[func(int, int) int](), func(a []reflect.Value) []reflect.Value {
		runtime.Gosched()
		return []reflect.Value{reflect.ValueOf(int(a[0].Int()*10 + a[1].Int()))}
	}).Interface().(func(int, int) int)
	for i := range 5 {
		out += fmt.Sprint(swap(i, i+1))
	}
	return out
}

func timers() any {
	n := 0
	tick := time.NewTicker(time.Millisecond)
	stop := time.After(20000 * time.Millisecond)
	fired := make(chan int, 1)
	time.AfterFunc(time.Millisecond, func() { fired <- 1 })
	got := 0
	for {
		select {
		case <-tick.C:
			n++
			if n%3 == 0 {
				runtime.GC()
			}
		case v := <-fired:
			got += v
		case <-stop:
			return "late"
		}
		if n > 5 && got > 0 {
			tick.Stop()
			return got
		}
	}
}

func finalizers() any {
	done := make(chan int, 100)
	for i := range 10 {
		x := &t{i}
		runtime.SetFinalizer(x, func(x *t) { done <- x.n })
		y := &t{i + 100}
		runtime.AddCleanup(y, func(n int) { done <- n }, i)
	}
	s := 0
	for n := 0; n < 18; {
		runtime.GC()
		select {
		case <-done:
			n++
		case <-time.After(time.Millisecond):
			s++
			if s > 2000 {
				return "none"
			}
		}
	}
	return "some"
}

func pulls() any {
	seq := func(n int) iter.Seq[int] {
		return func(yield func(int) bool) {
			defer func() { sink = n }()
			for i := range n {
				for j := range 2 {
					if !yield(i*2 + j) {
						return
					}
				}
			}
		}
	}
	out := 0
	for n := range 12 {
		next, stop := iter.Pull(seq(n))
		for k := 0; ; k++ {
			v, ok := next()
			if !ok || k == 7 {
				break
			}
			out = out*3 + v
			out %= 99991
		}
		stop()
		out += sinkInt()
	}
	func() {
		defer func() { out += len(fmt.Sprint(recover())) }()
		next, _ := iter.Pull(func(yield func(int) bool) { yield(1); panic("in pull") })
		next()
		next()
	}()
	return out
}

func sinkInt() int { n, _ := sink.(int); return n }
