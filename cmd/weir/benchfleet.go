// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/fleet"
)

type benchFleetCmd struct {
	Nodes   int           `help:"Envoys, each with a stream and reports of its own." default:"1000"`
	Tenants int           `help:"Tenants that each Envoy serves, beside the limits that all share." default:"1"`
	Steady  time.Duration `help:"How long to measure without a change." default:"15s"`
	Cuts    int           `help:"How often the quota is cut by half, and restored." default:"5"`
}

// Help is shown by weir bench fleet --help.
func (benchFleetCmd) Help() string {
	return "Starts a control plane in a process of its own, whose figures these are, and real xDS clients in this one. Each wants more than\n" +
		"its share of a provider's tokens and requests. A cut counts from when the policy file is written (which the control plane\n" +
		"looks at every 250 ms, twice before it takes it), and from when it is taken, until the Envoy has applied it and the control\n" +
		"plane has answered its report of that. Nothing filters here: what a push costs an Envoy is another question."
}

// benchFleetServeCmd is the other process of bench fleet.
type benchFleetServeCmd struct {
	Policy string `required:"" type:"path"`
	XDS    string `name:"xds" required:""`
	Status string `required:""`
}

func (c *benchFleetServeCmd) Run(ctx context.Context, s streams) error {
	xds, err := listen(c.XDS, "--xds")
	if err != nil {
		return err
	}
	status, err := listen(c.Status, "--status")
	if err != nil {
		xds.Close()
		return err
	}
	server, err := controlplane.New(controlplane.Config{
		PolicyFile: c.Policy, XDS: xds, Status: []net.Listener{status}, Listen: "127.0.0.1:0", Fleet: fleet.NewVolatile(true),
		Logger: newLogger(s.err, "warn"),
	})
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// A fleetBench is one run.
type fleetBench struct {
	*benchFleetCmd
	streams
	file        string
	xds, status string
	policy      []byte // as it is in force
}

func (c *benchFleetCmd) Run(ctx context.Context, s streams) error {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &fleetBench{benchFleetCmd: c, streams: s, file: filepath.Join(dir, "policy.yaml")}
	if err := b.write(false); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { cancel(); <-ended }()
	return b.measure(ctx)
}

// write writes the policy, with all of the quota or half of it.
func (b *fleetBench) write(half bool) error {
	tpm, rpm := b.Nodes*6000, b.Nodes*600
	if half {
		tpm, rpm = tpm/2, rpm/2
	}
	b.policy = fmt.Appendf(nil, `apiVersion: weir/v1
providers:
  p: {upstream: "http://127.0.0.1:1", dialect: generic, models: {m: {tpm: %d, rpm: %d, window: continuous}}}
limits: {tenant: {default: {tpm: 60000}}}
fleet: {max_envoys: %d}
`, tpm, rpm, b.Nodes)
	if err := os.WriteFile(b.file+"~", b.policy, 0o600); err != nil {
		return err
	}
	return os.Rename(b.file+"~", b.file)
}

// serve starts the control plane, and waits until it is ready.
func (b *fleetBench) serve(ctx context.Context) (ended <-chan struct{}, err error) {
	for _, addr := range []*string{&b.xds, &b.status} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*addr = l.Addr().String()
		l.Close()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, self, "bench", "fleet-serve", "--policy", b.file, "--xds", b.xds, "--status", b.status)
	p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
	p.WaitDelay = 5 * time.Second
	p.Stdout, p.Stderr = b.err, b.err
	if err := p.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Wait() }()
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get("http://" + b.status + "/readyz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return done, nil
			}
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return done, errors.New("the control plane does not start")
		}
	}
}

// fleetUsage is what the control plane has used so far.
type fleetUsage struct {
	at                time.Time
	cpu, memory       float64 // seconds, bytes
	pushes, pushBytes float64
	reports           float64
}

// usage reads the control plane's metrics.
func (b *fleetBench) usage() (u fleetUsage, err error) {
	r, err := http.Get("http://" + b.status + "/metrics")
	if err != nil {
		return u, err
	}
	defer r.Body.Close()
	u.at = time.Now()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "process_cpu_seconds_total":
			u.cpu = v
		case "process_resident_memory_bytes":
			u.memory = v
		case "weir_fleet_pushes_total":
			u.pushes = v
		case "weir_fleet_pushed_bytes_total":
			u.pushBytes = v
		case "weir_fleet_reports_total":
			u.reports = v
		}
	}
	return u, nil
}

// loadedAt is when the control plane has taken the policy that it serves.
func (b *fleetBench) loadedAt() (at time.Time, quota fleet.Quota, err error) {
	r, err := http.Get("http://" + b.status + "/api/status")
	if err != nil {
		return at, quota, err
	}
	defer r.Body.Close()
	var st controlplane.Status
	if err := json.NewDecoder(r.Body).Decode(&st); err != nil {
		return at, quota, err
	}
	if st.Policy == nil {
		return at, quota, errors.New("the control plane has no policy")
	}
	for _, q := range st.Fleet.Quotas {
		if q.Quota == "provider p/m" && q.Dimension == "tpm" {
			quota = q
		}
	}
	return st.Policy.LoadedAt, quota, nil
}

// percentiles writes a row of a table.
func (b *fleetBench) percentiles(what string, all []time.Duration) {
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[min(int(share*float64(len(all))), len(all)-1)].Round(time.Millisecond)
	}
	fmt.Fprintf(b.out, "| %s | %v | %v | %v | %d |\n", what, at(0.5), at(0.99), at(1), len(all))
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

// perSecond is the change of a figure from one usage to another.
func perSecond(from, to fleetUsage, of func(fleetUsage) float64) float64 {
	return (of(to) - of(from)) / cmp.Or(to.at.Sub(from.at).Seconds(), 1)
}
