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

func (o mapOf[T]) decode(path string, v jsonwalk.Value) error {
	if *o.m == nil {
		*o.m = map[string]T{}
	}
	return decodeMembers(path, v, func(path, key string, v jsonwalk.Value) error {
		var item T
		err := decode(path, v, &item)
		(*o.m)[key] = item
		return err
	})
}

// decodeMembers is the part of mapOf that is the same for all types, which the filter has in it once.
func decodeMembers(path string, v jsonwalk.Value, member func(path, key string, v jsonwalk.Value) error) (err error) {
	if !v.IsObject() {
		return wrongKind(path, v, "an object")
	}
	v.ForEach(func(key string, v jsonwalk.Value) bool {
		key = valid(key)
		err = member(Join(path, key), key, v)
		return err == nil
	})
	return err
}

// listOf is a list.
type listOf[T any] struct{ l *[]T }

func list[T any](l *[]T) listOf[T] { return listOf[T]{l} }

func (o listOf[T]) null() { *o.l = nil }

func (o listOf[T]) decode(path string, v jsonwalk.Value) error {
	*o.l = []T{}
	return decodeItems(path, v, func(v jsonwalk.Value) error {
		var item T
		err := decode(path, v, &item)
		*o.l = append(*o.l, item)
		return err
	})
}

func decodeItems(path string, v jsonwalk.Value, item func(jsonwalk.Value) error) (err error) {
	if !v.IsArray() {
		return wrongKind(path, v, "a list")
	}
	v.ForEach(func(_ string, v jsonwalk.Value) bool {
		err = item(v)
		return err == nil
	})
	return err
}
