// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// limit is what each tenant may use in a minute, except within, which has ten times as much, and perf and change, which
// have no limit that matters.
const (
	limit     = 10_000
	unlimited = 1_000_000_000
	callSize  = 500 // tokens of a usual call: a limiter that counts requests gets limit/callSize of them
)

// tenants have the limit; each measurement of each peer takes one that is fresh.
var tenants = func() (names []string) {
	for i := range 12 {
		names = append(names, fmt.Sprintf("tenant-%d", i))
	}
	return names
}()

// A peer is one way to the provider.
type peer struct {
	name, addr string
	parts      []*process // whose processor time and memory are the peer's
	store      *process   // what keeps the counts; nil: the peer has nothing of the kind
	// change gives tenant change another limit, while the peer runs; nil: only a restart does.
	change func(limit int) error
}

// A bench has everything that one run needs.
type bench struct {
	dir       string // of this run: configurations and logs
	root      string // of the repository
	envoy     string
	tools     string
	self      string // this program, if it is not what runs
	litellm   bool
	short     bool
	provider  string // host:port
	processes []*process
	peers     []*peer
	report    *report
}

func (b *bench) run(p *process) (*process, error) {
	p.dir = b.dir
	if err := p.start(); err != nil {
		return nil, err
	}
	b.processes = append(b.processes, p)
	return p, nil
}

func (b *bench) close() {
	for _, p := range slices.Backward(b.processes) {
		_ = p.stop()
	}
}

// write replaces a file of this run at once, as what watches files wants it.
func (b *bench) write(name, text string) (path string, err error) {
	path = filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "new"), []byte(text), 0o644); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(b.dir, "new"), path)
}

// startProvider starts this program as the provider.
func (b *bench) startProvider() error {
	self := b.self
	if self == "" {
		self, _ = os.Executable()
	}
	b.provider = freeAddr()
	_, err := b.run(&process{name: "provider", addr: b.provider, args: []string{self, "upstream", b.provider}})
	return err
}

func (b *bench) startPeers() error {
	if err := b.startProvider(); err != nil {
		return err
	}
	b.peers = []*peer{{name: "direct", addr: b.provider}}
	redis, service, err := b.startService()
	if err != nil {
		return err
	}
	err = errors.Join(b.startEnvoy("plain Envoy", "", nil, nil, nil), b.startEnvoy("plain Envoy, again", "", nil, nil, nil),
		b.startLocal(),
		b.startEnvoy("ratelimit, calls", serviceFilter(byCall), service, redis, b.serviceLimits),
		b.startEnvoy("ratelimit, tokens when done", usageFilters+serviceFilter(whenDone), service, redis, b.serviceLimits),
		b.startHardcap("hardcap", "max_tokens", redis), b.startHardcap("hardcap, p95", "p95", redis),
		b.startWeir())
	if b.litellm {
		err = errors.Join(err, b.startLiteLLM(redis))
	}
	return err
}

// startEnvoy starts an Envoy without weir.
func (b *bench) startEnvoy(name, filters string, service, redis *process, change func(int) error) error {
	addr, serviceAddr := freeAddr(), freeAddr()
	if service != nil {
		serviceAddr = service.addr
	}
	lds, err := b.write(name+".listener.yaml", listener(addr, filters))
	if err != nil {
		return err
	}
	envoy, err := b.runEnvoy(name, addr, bootstrap(lds, b.provider, serviceAddr))
	if err != nil {
		return err
	}
	p := &peer{name: name, addr: addr, parts: []*process{envoy}, store: redis, change: change}
	if service != nil {
		p.parts = append(p.parts, service, redis)
	}
	b.peers = append(b.peers, p)
	return nil
}

func (b *bench) runEnvoy(name, addr, config string) (*process, error) {
	file, err := b.write(name+".envoy.yaml", config)
	if err != nil {
		return nil, err
	}
	return b.run(&process{name: name, addr: addr, args: []string{b.envoy, "--config-path", file, "--concurrency", "2", "--use-dynamic-base-id", "--log-level", "warning"}})
}

func (b *bench) startLocal() error {
	const name = "local_ratelimit"
	if err := b.startEnvoy(name, localFilter(limit/callSize, unlimited), nil, nil, nil); err != nil {
		return err
	}
	p := b.peers[len(b.peers)-1]
	p.change = func(to int) error {
		_, err := b.write(name+".listener.yaml", listener(p.addr, localFilter(limit/callSize, to)))
		return err
	}
	return nil
}
