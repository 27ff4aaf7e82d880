// SPDX-License-Identifier: Apache-2.0

package policytest

import "iter"

// A Worker is something that accesses a store; it calls yield before each access.
type Worker func(yield func())

// Run runs the workers one access at a time. choose says which of the n that are not done goes next, 0..n-1.
func Run(choose func(n int) int, workers ...Worker) {
	var next []func() (struct{}, bool)
	for _, w := range workers {
		f, stop := iter.Pull(func(y func(struct{}) bool) { w(func() { y(struct{}{}) }) })
		defer stop()
		next = append(next, f)
	}
	for len(next) > 0 {
		i := choose(len(next))
		if _, ok := next[i](); !ok {
			next = append(next[:i], next[i+1:]...)
		}
	}
}

// EveryOrder calls run with choices for [Run] until it has seen every order with at most switches changes from a worker
// that could go on to another. It gives the number of orders.
func EveryOrder(switches int, run func(choose func(n int) int)) (orders int) {
	var path []choice
	for {
		depth, left, last := 0, switches, 0
		run(func(n int) int {
			if last >= n { // the one that ran is done
				last = 0
			}
			if depth == len(path) {
				path = append(path, choice{most: n})
				if left == 0 {
					path[depth].most = 1
				}
			}
			pick := (last + path[depth].at) % n
			if path[depth].at > 0 {
				left--
			}
			depth++
			last = pick
			return pick
		})
		orders++
		path = path[:depth]
		for len(path) > 0 && path[len(path)-1].at+1 >= path[len(path)-1].most {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return orders
		}
		path[len(path)-1].at++
	}
}

// A choice is how far from the worker that ran the next one is, and how many there were.
type choice struct{ at, most int }

// A View is a worker's access to a store: it yields before each.
type View struct {
	*Store
	Yield func()
}

// Get yields and reads.
func (v View) Get(key string) ([]byte, uint32, bool) {
	v.Yield()
	return v.Store.Get(key)
}

// Set yields and writes.
func (v View) Set(key string, data []byte, cas uint32) bool {
	v.Yield()
	return v.Store.Set(key, data, cas)
}
