// SPDX-License-Identifier: Apache-2.0

// Package store keeps what a control plane must not forget: who may grant shares, what was granted and used, and the buckets
// of central limits. There are two kinds: one file, for a control plane that is alone ([OpenBolt]), and Redis or Valkey, for
// any number of replicas ([OpenRedis]).
//
// A central limit has the rule of rule.go in both: the file runs it in Go, Redis the same in Lua (rule.lua), at Redis's own
// time. A test holds one against the other.
package store
