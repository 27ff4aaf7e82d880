// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// What pushes of shares cost requests is measured at one Envoy with two workers, whose control plane is build/pusher, at the same load
// with and without, in turn.
const (
	pushUsers   = 1000
	pushRate    = 10  // documents a second
	pushLoad    = 300 // requests a second, at times that chance has made
	pushClients = 16  // connections
	pushSettle  = 500 * time.Millisecond
)

// A pushRun is what was seen with pushes, or without.
type pushRun struct {
	all     samples          // by phase
	cpu     [2]time.Duration // of the workers, and of the rest of Envoy
	took    time.Duration
	pushed  int    // documents
	reloads int64  // of shares, by Envoy's own count
	told    uint64 // grants that reports have called in force
}

func (b *bench) pushCosts(ctx context.Context) error {
	e, err := b.startPusher()
	if err != nil {
		return err
	}
	if err := e.meet(ctx); err != nil {
		return err
	}
	rounds, length := 20, 4*time.Second
	if b.short {
		rounds, length = batches, 3*time.Second
	}
	l := e.openLoad()
	defer l.close()
	var runs [2]pushRun // without, and with
	for i := range 2 * rounds {
		with := (i + i/2) % 2 // which comes first changes
		if err := e.phase(ctx, l, &runs[with], with*pushRate, length); err != nil {
			return err
		}
	}
	b.report.pushCosts(&runs, e.counts.Bytes)
	return ctx.Err()
}

// phase measures for a while.
func (e *pushEnvoy) phase(ctx context.Context, l *openLoad, run *pushRun, rate int, length time.Duration) error {
	if err := e.order(rate); err != nil {
		return err
	}
	if rate == 0 {
		time.Sleep(time.Second) // what was pushed last is reported
	}
	time.Sleep(pushSettle)
	if err := e.ask(); err != nil {
		return err
	}
	before, cpu, started := e.counts, e.workers(), time.Now()
	reloads, err := e.reloads()
	if err != nil {
		return err
	}
	times, err := l.measure(ctx, length)
	if err != nil {
		return err
	}
	after, err := e.reloads()
	if err != nil {
		return err
	}
	if err := e.ask(); err != nil {
		return err
	}
	run.all = append(run.all, times)
	for i, now := range e.workers() {
		run.cpu[i] += now - cpu[i]
	}
	run.took += time.Since(started)
	run.pushed, run.told, run.reloads = run.pushed+e.counts.Pushed-before.Pushed, run.told+e.counts.Told-before.Told, run.reloads+after-reloads
	return nil
}

// measurePushes takes the figures of this part alone, and puts it in its place in a file's text.
func (b *bench) measurePushes(ctx context.Context, file string) (string, error) {
	done, err := b.open()
	if err != nil {
		return "", err
	}
	defer done()
	if err := b.startProvider(); err != nil {
		return "", err
	}
	started, before := time.Now(), machine()
	if err := b.pushCosts(ctx); err != nil {
		return b.report.String(), err
	}
	part := fmt.Sprintf("%s\nMeasured by itself %s in %v. At the beginning: %s. At the end: %s.\n", b.report, started.Format("2006-01-02"), time.Since(started).Round(time.Second), before, machine())
	old, err := os.ReadFile(file)
	if err != nil {
		return part, nil // there is nothing around it
	}
	around, _, _ := strings.Cut(string(old), "\n### "+pushTitle+"\n")
	return around + part, nil
}
