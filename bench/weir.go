// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// weirPolicy has limits on the tiers that a usual policy has.
func (b *bench) weirPolicy(change int) (file string, err error) {
	return b.write("weir.yaml", fmt.Sprintf(`apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://%s", prefix: /, models: {"*": {rpm: 1_000_000_000, tpm: 1_000_000_000_000}}}
limits:
  tenant:
    default: {tpm: %d}
    perf: {rpm: 1_000_000_000, tpm: 1_000_000_000_000}
    within: {tpm: %d}
    change: {tpm: %d}
  user: {default: {tpm: 1_000_000_000_000}}
`, b.provider, limit, 10*limit, change))
}

// startWeir starts the control plane, and an Envoy that takes everything from it.
func (b *bench) startWeir() error {
	policy, err := b.weirPolicy(unlimited)
	if err != nil {
		return err
	}
	weir, xds, status, addr := filepath.Join(b.root, "bin/weir"), freeAddr(), freeAddr(), freeAddr()
	control, err := b.run(&process{name: "weir control plane", addr: status, args: []string{
		weir, "serve", "--policy", policy, "--xds", xds, "--status", status, "--listen", addr, "--state-dir", b.dir, "--log-level", "warn",
	}})
	if err != nil {
		return err
	}
	wasm, err := exec.Command(weir, "wasm", "--dir", b.dir).Output()
	if err != nil {
		return fmt.Errorf("weir wasm: %w", err)
	}
	config, err := exec.Command(weir, "bootstrap", "--policy", policy, "--node", "bench", "--xds", xds, "--control", status, "--wasm", strings.TrimSpace(string(wasm))).Output()
	if err != nil {
		return fmt.Errorf("weir bootstrap: %w", err)
	}
	envoy, err := b.runEnvoy("weir", addr, string(config))
	if err != nil {
		return err
	}
	b.peers = append(b.peers, &peer{name: "weir", addr: addr, parts: []*process{envoy, control}, store: control, change: func(limit int) error {
		_, err := b.weirPolicy(limit)
		return err
	}})
	return nil
}
