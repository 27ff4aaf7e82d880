// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A soakSample is what a process has taken of the machine at a time; -1 where it could not be seen.
type soakSample struct {
	at                                    time.Time
	envoyMiB, serveMiB, goroutines, files float64
}

// watch takes samples until the end.
func (s *soak) watch(end time.Time) {
	for ; time.Now().Before(end); time.Sleep(2 * time.Second) {
		s.samples = append(s.samples, s.sample())
	}
}

func (s *soak) sample() soakSample {
	v := soakSample{at: time.Now(), envoyMiB: residentMiB(s.envoyProc.Pid), serveMiB: -1, goroutines: -1, files: -1}
	if code, text := get(s.t, "http://"+s.status+"/metrics"); code == 200 {
		v.serveMiB, v.goroutines, v.files = metric(text, "process_resident_memory_bytes")/(1<<20), metric(text, "go_goroutines"), metric(text, "process_open_fds")
	}
	return v
}

// residentMiB is what a process has in memory.
func residentMiB(pid int) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return -1
	}
	f := strings.Fields(string(b))
	pages, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return -1
	}
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// metric is the value of a metric without labels; -1 if it is not there.
func metric(text, name string) float64 {
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return -1
	}
	return v
}

// flat compares the last third of the time with the third before: what only grows has grown. Peaks do not matter, so it is the
// lower quarter that counts.
func (s *soak) flat() {
	// While the control plane stands still, Envoy opens a connection for each call that waits; they go after an idle minute.
	waiting := 64.0
	if n := len(s.samples); n > 0 && s.samples[n-1].at.Sub(s.samples[0].at) > 8*time.Minute {
		waiting = 8
	}
	for _, m := range []struct {
		name  string
		of    func(soakSample) float64
		grace float64
	}{
		{"MiB of Envoy", func(v soakSample) float64 { return v.envoyMiB }, 40},
		{"MiB of weir serve", func(v soakSample) float64 { return v.serveMiB }, 24},
		{"goroutines of weir serve", func(v soakSample) float64 { return v.goroutines }, waiting},
		{"files of weir serve", func(v soakSample) float64 { return v.files }, waiting},
	} {
		n := len(s.samples)
		before, after := low(s.samples[n/3:2*n/3], m.of), low(s.samples[2*n/3:], m.of)
		s.t.Logf("%-26s %6.1f, then %6.1f; tenth by tenth %.1f", m.name, before, after, s.tenths(m.of))
		if before <= 0 || after <= 0 {
			s.t.Errorf("%s could not be seen", m.name)
		}
		if after > before+m.grace {
			s.t.Errorf("%s grow: %.1f in the second third, %.1f in the last", m.name, before, after)
		}
	}
}

// tenths shows the course of a long run.
func (s *soak) tenths(of func(soakSample) float64) (all []float64) {
	for n, i := len(s.samples), 0; n >= 40 && i < 10; i++ {
		all = append(all, low(s.samples[n*i/10:n*(i+1)/10], of))
	}
	return all
}

func low(samples []soakSample, of func(soakSample) float64) float64 {
	var all []float64
	for _, v := range samples {
		if x := of(v); x >= 0 {
			all = append(all, x)
		}
	}
	if len(all) < 4 {
		return -1
	}
	slices.Sort(all)
	return all[len(all)/4]
}
