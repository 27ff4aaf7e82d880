// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/weirproxy/weir/policy/jsonwalk"

// optional is a pointer that is nil where nothing is written.
type optional[T any] struct{ p **T }

func maybe[T any](p **T) optional[T] { return optional[T]{p} }

func (o optional[T]) null() { *o.p = nil }

func (o optional[T]) decode(path string, v jsonwalk.Value) error {
	if *o.p == nil {
		*o.p = new(T)
	}
	return decode(path, v, *o.p)
}

// mapOf is a map whose keys are names that the policy makes up.
type mapOf[T any] struct{ m *map[string]T }

func named[T any](m *map[string]T) mapOf[T] { return mapOf[T]{m} }

func (o mapOf[T]) null() { *o.m = nil }

func (o mapOf[T]) decode(path string, v jsonwalk.Value) (err error) {
	if !v.IsObject() {
		return wrongKind(path, v, "an object")
	}
	if *o.m == nil {
		*o.m = map[string]T{}
	}
	v.ForEach(func(key string, v jsonwalk.Value) bool {
		key = valid(key)
		var item T
		err = decode(Join(path, key), v, &item)
		(*o.m)[key] = item
		return err == nil
	})
	return err
}

// listOf is a list.
type listOf[T any] struct{ l *[]T }

func list[T any](l *[]T) listOf[T] { return listOf[T]{l} }

func (o listOf[T]) null() { *o.l = nil }

func (o listOf[T]) decode(path string, v jsonwalk.Value) (err error) {
	if !v.IsArray() {
		return wrongKind(path, v, "a list")
	}
	*o.l = []T{}
	v.ForEach(func(_ string, v jsonwalk.Value) bool {
		var item T
		err = decode(path, v, &item)
		*o.l = append(*o.l, item)
		return err == nil
	})
	return err
}
