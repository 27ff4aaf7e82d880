// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what users run: the binary, the filter in a real Envoy with two workers, the mock provider as referee.
// It uses built artifacts only (make build, make .tools/envoy/bin/envoy) and imports nothing of the code under test but
// package envoy, which starts an Envoy. A test fails where an artifact is missing; none is skipped.
package e2e
