// SPDX-License-Identifier: Apache-2.0

// Package envoy knows how weir is put into an Envoy: which Envoy (requirements.txt, [Version]), where one is ([Find]), what
// it has to be started with ([Bootstrap]), and how it is run on this machine ([Run]).
//
// What an Envoy then gets from the control plane is the business of package controlplane/translate.
package envoy
