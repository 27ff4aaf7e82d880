// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package filter_test

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of the processors: the other work of the machine is no fault of weir's.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
