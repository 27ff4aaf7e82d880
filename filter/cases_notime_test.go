// SPDX-License-Identifier: Apache-2.0

//go:build wasip1

package filter_test

import "time"

// cpuTime is not known there; these tests only run natively, but are vetted for both.
func cpuTime() time.Duration { return 0 }
