// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/internal/mock"
)

//go:embed benchenvoy.yaml
var benchEnvoy string

// benchPolicy has limits on all tiers that a usual policy has, none of which is ever reached.
const benchPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://127.0.0.1:1", prefix: /, models: {"*": {rpm: 1_000_000_000, tpm: 1_000_000_000_000}}}
limits:
  tenant: {default: {rpm: 1_000_000_000, tpm: 1_000_000_000_000}}
  user:   {default: {tpm: 1_000_000_000_000}}
`

// A target is one way to the provider.
type target struct{ name, addr string }

// benchTargets starts a mock provider, two Envoys without weir, and weir.
func benchTargets(ctx context.Context, s streams) (targets []target, done func(), err error) {
	var closes []func()
	done = func() {
		for _, f := range slices.Backward(closes) {
			f()
		}
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, done, err
	}
	closes = append(closes, func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(benchPolicy), 0o644); err != nil {
		return nil, done, err
	}
	fmt.Fprintln(s.err, "Starting a mock provider and three Envoys …")
	st, err := startStack(ctx, stackOptions{
		policyFile: file, listen: "127.0.0.1:0", status: statusFlag{[]string{"127.0.0.1:0"}}, workers: 2,
		mock: new(mock.Config), log: slog.New(slog.DiscardHandler), envoyLog: io.Discard,
	})
	if err != nil {
		return nil, done, err
	}
	closes = append(closes, st.Close)
	for _, name := range []string{"no filter", "local_ratelimit"} {
		addr, stop, err := startBenchEnvoy(ctx, name, st.mockAddr)
		if err != nil {
			return nil, done, err
		}
		closes = append(closes, stop)
		targets = append(targets, target{name, addr})
	}
	return append(targets, target{"weir", st.proxy}), done, nil
}

func startBenchEnvoy(ctx context.Context, name, mockAddr string) (addr string, stop func(), err error) {
	host, port, _ := strings.Cut(mockAddr, ":")
	config := strings.NewReplacer("HOST", host, "PORT", port).Replace(benchEnvoy)
	if name == "no filter" {
		before, rest, _ := strings.Cut(config, "# limiter\n")
		_, after, _ := strings.Cut(rest, "# end\n")
		config = before + after
	}
	p, err := envoy.Run(ctx, envoy.Options{Bootstrap: []byte(config), Concurrency: 2, Log: io.Discard})
	if err != nil {
		return "", nil, err
	}
	addr, err = p.Listener(ctx, "bench")
	return addr, func() { p.Stop() }, err
}
