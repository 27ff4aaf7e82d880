// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 && weirtrap

package main

// A filter built with the tag weirtrap, which no release is, lets a test kill the worker's VM: a wait that nothing ends is a
// fatal error in Go, which no guard recovers from.
func init() {
	beforeRequest = func() {
		if header(requestHeaders, "x-weir-trap") != "" {
			select {}
		}
	}
}
