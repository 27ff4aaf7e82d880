// SPDX-License-Identifier: Apache-2.0

// Package faults tests the tests: each fault of its list is planted into the code, in memory, and the test that is there to
// see it must fail. It has no code of its own.
package faults
