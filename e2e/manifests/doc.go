// SPDX-License-Identifier: Apache-2.0

// Package manifests has no code: its tests hold what weir prints and ships for Kubernetes, Istio and Envoy Gateway against the
// real types of these, render the Helm chart with Helm's own library, and give the Envoy parts to a real Envoy. It is a module of
// its own, so that weir needs none of that.
package manifests
