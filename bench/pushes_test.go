// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestPushReport(t *testing.T) {
	var runs [2]pushRun
	for i := range runs {
		for range 2 * batches {
			phase := make([]time.Duration, 100)
			for k := range phase {
				phase[k] = time.Duration(1+i) * time.Millisecond // twice as long with pushes
			}
			runs[i].all = append(runs[i].all, phase)
		}
		runs[i].took, runs[i].pushed, runs[i].reloads, runs[i].told = 10*time.Second, 100, 90, 80*pushUsers
	}
	r := new(report)
	r.pushCosts(&runs, 2048)
	for _, want := range []string{
		"| without pushes | 1000 | 1000 | 1000 |", "| 10 pushes a second | 1000 | 2000 | 2000 |", "| 10.0 | 9.0 | 8.0 |",
		"p50 with pushes ÷ without: 2.00 (2.00 to 2.00).", "p99 with pushes ÷ without: 2.00 (2.00 to 2.00).",
	} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("no %q in\n%s", want, r)
		}
	}
}
