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
	return b.write("weir.yaml", b.policy(fmt.Sprintf(`  tenant:
    default: {tpm: %d}
    perf: {rpm: 1_000_000_000, tpm: 1_000_000_000_000}
    within: {tpm: %d}
    change: {tpm: %d}
  user: {default: {tpm: 1_000_000_000_000}}
`, limit, 10*limit, change)))
}

func (b *bench) policy(limits string) string {
	return fmt.Sprintf(`apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://%s", prefix: /, models: {"*": {rpm: 1_000_000_000, tpm: 1_000_000_000_000}}}
limits:
%s`, b.provider, limits)
}

// startWeir starts the peer.
func (b *bench) startWeir() error {
	policy, err := b.weirPolicy(unlimited)
	if err != nil {
		return err
	}
	p, err := b.runWeir("weir", policy)
	if err == nil {
		p.change = func(limit int) error {
			_, err := b.weirPolicy(limit)
			return err
		}
		b.peers = append(b.peers, p)
	}
	return err
}

// runWeir starts a control plane, and an Envoy that takes everything from it.
func (b *bench) runWeir(name, policy string) (*peer, error) {
	weir, xds, status, addr := filepath.Join(b.root, "bin/weir"), freeAddr(), freeAddr(), freeAddr()
	control, err := b.run(&process{name: name + " control plane", addr: status, args: []string{
		weir, "serve", "--policy", policy, "--xds", xds, "--status", status, "--listen", addr, "--store", "bolt:" + filepath.Join(b.dir, name+".db"), "--log-level", "warn",
	}})
	if err != nil {
		return nil, err
	}
	wasm, err := exec.Command(weir, "wasm", "--dir", b.dir).Output()
	if err != nil {
		return nil, fmt.Errorf("weir wasm: %w", err)
	}
	config, err := exec.Command(weir, "bootstrap", "--policy", policy, "--node", "bench", "--xds", xds, "--control", status, "--wasm", strings.TrimSpace(string(wasm))).Output()
	if err != nil {
		return nil, fmt.Errorf("weir bootstrap: %w", err)
	}
	envoy, err := b.runEnvoy(name, addr, string(config))
	return &peer{name: name, addr: addr, parts: []*process{envoy, control}, store: control}, err
}
