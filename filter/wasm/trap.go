// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 && weirtrap

package main

import "github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"

// A filter built with the tag weirtrap, which no release is, lets a test kill the worker's VM: a wait that nothing ends is a
// fatal error in Go, which no guard recovers from.
func init() {
	beforeRequest = func() {
		if v, err := proxywasm.GetHttpRequestHeader("x-weir-trap"); err == nil && v != "" {
			select {}
		}
	}
}
