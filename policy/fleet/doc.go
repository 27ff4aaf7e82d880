// SPDX-License-Identifier: Apache-2.0

// Package fleet shares a quota out over many Envoys: never more than the quota in sum, whatever is lost on the way. It is
// the protocol alone, both sides of it: state machines that messages and the time drive.
package fleet
