// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A pushEnvoy is the Envoy, with its control plane.
type pushEnvoy struct {
	*peer
	b       *bench
	control string
	admin   string
	counts  pushCounts
}

func (b *bench) startPusher() (*pushEnvoy, error) {
	policy, err := b.write("pushes.yaml", b.policy("  user: {default: {tpm: 1_000_000_000}}\n"))
	if err != nil {
		return nil, err
	}
	weir, xds, e := filepath.Join(b.root, "bin/weir"), freeAddr(), &pushEnvoy{peer: &peer{name: "pushes", addr: freeAddr()}, b: b, control: freeAddr(), admin: freeAddr()}
	control, err := b.run(&process{name: "pusher", addr: e.control, args: []string{
		filepath.Join(b.root, "build/pusher"), "-policy", policy, "-xds", xds, "-status", e.control, "-listen", e.addr,
	}})
	if err != nil {
		return nil, err
	}
	wasm, err := exec.Command(weir, "wasm", "--dir", b.dir).Output()
	if err != nil {
		return nil, fmt.Errorf("weir wasm: %w", err)
	}
	config, err := exec.Command(weir, "bootstrap", "--policy", policy, "--node", "bench", "--xds", xds, "--control", e.control, "--admin", e.admin, "--wasm", strings.TrimSpace(string(wasm))).Output()
	if err != nil {
		return nil, fmt.Errorf("weir bootstrap: %w", err)
	}
	envoy, err := b.runEnvoy(e.name, e.addr, string(config))
	e.parts = []*process{envoy, control}
	return e, err
}

// meet has each user make calls until all have a share.
func (e *pushEnvoy) meet(ctx context.Context) error {
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); {
		if err := e.b.manyUsers(ctx, e.peer, 0, pushUsers, pushUsers); err != nil {
			return err
		}
		time.Sleep(1500 * time.Millisecond) // a report
		if err := e.ask(); err != nil || e.counts.Keys >= pushUsers {
			return err
		}
	}
	return fmt.Errorf("%d of %d users have a share", e.counts.Keys, pushUsers)
}

func (e *pushEnvoy) ask() error {
	r, err := http.Get("http://" + e.control + "/pushes")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(&e.counts)
}

// order has the control plane push so many documents a second from now on.
func (e *pushEnvoy) order(rate int) error {
	r, err := http.Post(fmt.Sprintf("http://%s/pushes?rate=%d", e.control, rate), "", nil)
	if err == nil {
		r.Body.Close()
	}
	return err
}

// reloads is how often Envoy has taken shares.
func (e *pushEnvoy) reloads() (n int64, err error) {
	r, err := http.Get("http://" + e.admin + "/stats?filter=weir.shares.config_reload$")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	var name string
	_, err = fmt.Fscan(r.Body, &name, &n)
	return n, err
}

// workers is the processor time of the Envoy's workers, and of its other threads.
func (e *pushEnvoy) workers() (cpu [2]time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", e.parts[0].cmd.Process.Pid))
	for _, t := range threads {
		stat, err := os.ReadFile(t + "/schedstat") // in ns; what is said elsewhere is in ticks
		name, _ := os.ReadFile(t + "/comm")
		var ns time.Duration
		if _, scanned := fmt.Sscan(string(stat), &ns); err != nil || scanned != nil {
			continue
		}
		if strings.HasPrefix(string(name), "wrk:") {
			cpu[0] += ns
		} else {
			cpu[1] += ns
		}
	}
	return cpu
}

// pushCounts are what build/pusher tells.
type pushCounts struct {
	Keys, Pushed, Bytes int
	Granted, Told       uint64
}
