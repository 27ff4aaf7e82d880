// SPDX-License-Identifier: Apache-2.0

// Package filter turns Envoy's callbacks into decisions of package policy, and decisions into headers and replies. It runs
// in a proxy-wasm VM, one for each worker of Envoy, and knows Envoy only as a [Host], so that tests can give it another.
//
// A [VM] lives as long as its memory; a [Plugin] is one configuration in it; a [Stream] is one request and its answer. A
// stream is a small state machine: it reads, is decided once, answers, and is settled once, whatever of the callbacks come
// and in what order. Every callback is guarded: a panic is counted, and the stream fails to the side that the policy says.
//
// Nothing here blocks, sleeps or starts a goroutine: the VM's thread is Envoy's (RATIONALE.md, "Why no goroutines?").
package filter
