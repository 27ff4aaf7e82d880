// SPDX-License-Identifier: Apache-2.0

// Package xds serves configuration to Envoys over the incremental (delta) xDS protocol, and knows what each of them made of
// it.
//
// Each stream has a snapshot of its own, under a key of its own, not one for its node id: two Envoys that were given the same
// id do not disturb each other, and a stream that ends late, after its Envoy has come back on a new one, takes nothing away
// from that.
//
// A configuration that an Envoy rejects (NACK) is recorded and not sent again; the Envoy stays with the one it has. What it
// accepts (ACK) its main thread has accepted: its workers follow a moment later.
package xds
