// SPDX-License-Identifier: Apache-2.0

package main

// Here: irregular loops, with goroutine switches in them.

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

// goroutine switches in a loop with several entries
func entries() any {
	a, b := make(chan int), make(chan int)
	var wg sync.WaitGroup
	wg.Add(2)
	log := 0
	step := func(k int) { runtime.Gosched(); log = log*31 + k; log %= 1000003 }
	go func() {
		defer wg.Done()
		i := 0
		if len(os.Args) > 5 { // never, which the compiler does not know
			goto middle
		}
	top:
		step(1)
		a <- i
		if i%3 == 0 {
			goto middle
		}
		step(2)
		i += <-b
	middle:
		step(3)
		i++
		if i%5 == 2 {
			runtime.Gosched()
			goto top
		}
		for j := 0; j < i%4; j++ {
			step(j)
			if j == 2 {
				goto top
			}
			if i > 60 {
				close(a)
				return
			}
		}
		if i < 70 {
			goto top
		}
		close(a)
	}()
	sum := 0
	go func() {
		defer wg.Done()
		for v := range a {
			sum = sum*7 + v
			sum %= 1000003
			if v%3 != 0 {
				b <- 1
			}
		}
	}()
	wg.Wait()
	return []int{sum, log}
}

func gotos() any {
	out := []int{}
	for start := range 6 {
		x, n := start, 0
		switch start {
		case 0:
			goto a
		case 1:
			goto b
		case 2:
			goto c
		case 3:
			goto d
		}
		goto e
	a:
		n++
		x = x*3 + 1
		if x&1 == 0 {
			goto c
		}
	b:
		n += 2
		x ^= n
		if x%5 == 0 {
			goto d
		}
		runtime.Gosched()
	c:
		n += 3
		x += 7
		if n > 400 {
			goto e
		}
		if x%3 == 0 {
			goto b
		}
	d:
		n += 5
		if x%7 < 3 {
			goto a
		}
		x = (x + n) % 10007
		if n < 300 {
			goto b
		}
	e:
		n += 11
		if n < 200 {
			x++
			goto d
		}
		out = append(out, x, n)
	}
	return out
}

func switches() any {
	s := 0
	for i := range 400 {
		switch i % 37 {
		case 0:
			s += 1
		case 1:
			s ^= 2
			fallthrough
		case 2:
			s += 3
		case 3, 5, 7:
			s += i
		case 8:
			s *= 3
		case 9:
			s--
		case 10:
			s += 10
		case 11:
			runtime.Gosched()
		case 12:
			s += 12
		case 13:
			continue
		case 14:
			s %= 1000
		case 20:
			s += 20
		default:
			s++
		}
		switch fmt.Sprint("k", i%11) {
		case "k0":
			s += 5
		case "k1":
			s += 6
		case "k2":
			s += 7
		case "k3":
			s += 8
		case "k4":
			s += 9
		case "k5":
			s += 15
		case "k6":
			s += 25
		case "k7":
			s += 35
		case "k10":
			s += 45
		}
	}
	return s
}

func labels() any {
	s := 0
a:
	for i := 0; i < 12; i++ {
	b:
		for j := 0; j < 12; j++ {
		c:
			for k := 0; ; k++ {
				s += i*j + k
				switch {
				case k == 7:
					break c
				case s%11 == 3:
					continue b
				case s%17 == 5:
					continue a
				case s%19 == 1:
					break b
				case s > 1<<20:
					break a
				case s%5 == 0:
					runtime.Gosched()
				}
			}
		}
	}
	return s
}

func selects() any {
	a, b, c, done := make(chan int), make(chan int, 3), make(chan string), make(chan struct{})
	go func() {
		for i := range 40 {
			a <- i
		}
		close(done)
	}()
	go func() {
		for i := range 30 {
			select {
			case b <- i:
			case <-done:
				return
			}
			runtime.Gosched()
		}
	}()
	sa, sb, n := 0, 0, 0
outer:
	for {
		for k := 0; k < 3; k++ {
			select {
			case v := <-a:
				sa += v
				if v%4 == 0 {
					continue outer
				}
			case v := <-b:
				sb += v
			case s := <-c:
				panic(s)
			case <-done:
				break outer
			}
			select {
			case v := <-a:
				sa += v
			default:
				n++
			}
		}
	}
	return sa
}
