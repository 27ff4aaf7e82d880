// SPDX-License-Identifier: Apache-2.0

// Package controlplane is weir's control plane: it follows a policy file, serves what comes of it to Envoys, and shows on a
// small page what each of them made of it.
//
//	watch ──policy──> Server ──translate──> xds ──> Envoys
//	                    │                    │
//	                    │  └── status page <──┘ accepted, rejected
//	Envoys ──reports──> fleet ──shares of each Envoy──> xds
//
// A policy with errors changes nothing: the last good one stays, and the page says what is wrong and where.
package controlplane
