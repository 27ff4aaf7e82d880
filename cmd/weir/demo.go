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
	"time"

	"github.com/weirproxy/weir/internal/mock"
	"github.com/weirproxy/weir/policyfile"
)

//go:embed demo.yaml
var demoPolicy []byte

type demoCmd struct {
	Requests int    `help:"Requests in the burst, all at once." default:"200"`
	Listen   string `help:"Address where requests are taken." default:"127.0.0.1:10000"`
	statusFlag
	Keep bool `help:"Stay up after the burst, as on a terminal."`
}

// Help is shown by weir demo --help.
func (demoCmd) Help() string {
	return "It needs no account and no key. On a terminal it stays up afterwards, so that you can try requests of your own."
}

func (c *demoCmd) Run(ctx context.Context, s streams) error {
	if err := requireLoopback(append(c.Status, c.Listen)...); err != nil {
		return err
	}
	if c.Requests < 1 || c.Requests > 10_000 {
		return usagef("--requests %d: write 1 to 10000", c.Requests)
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, demoPolicy, 0o644); err != nil {
		return err
	}
	result, err := policyfile.Read(file)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "Starting a mock provider, the control plane, and Envoy with two workers and the filter (a few seconds) …")
	st, err := startStack(ctx, stackOptions{
		policyFile: file, listen: c.Listen, status: c.statusFlag, workers: 2,
		mock: demoMock(), log: slog.New(slog.DiscardHandler), envoyLog: io.Discard,
	})
	if err != nil {
		return err
	}
	defer st.Close()
	return c.show(ctx, s, st, result)
}

// demoMock is a provider with the limits that the policy says it has, over any minute, so that a request too many is
// answered 429.
func demoMock() *mock.Config {
	return &mock.Config{RPM: 600, TPM: 20_000, Mode: mock.ModeSliding, Latency: 100 * time.Millisecond}
}

// withoutWeir sends the burst straight to another such provider.
func (c *demoCmd) withoutWeir(ctx context.Context) ([]answer, error) {
	m, err := mock.New(*demoMock())
	if err != nil {
		return nil, err
	}
	l, server, err := m.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = serveUntil(ctx, server, l) }()
	return burst(ctx, c.Requests, func(string) string { return "http://" + l.Addr().String() }), nil
}

func (c *demoCmd) show(ctx context.Context, s streams, st *stack, p *policyfile.Result) error {
	fmt.Fprintf(s.out, "Sending %d requests at once, from three tenants: straight to the provider, and through weir …\n\n", c.Requests)
	without, err := c.withoutWeir(ctx)
	if err != nil {
		return err
	}
	answers := burst(ctx, c.Requests, func(provider string) string { return "http://" + st.proxy + "/" + provider })
	fmt.Fprintf(s.out, "%s\n%s\n", report(without, answers), usage(st.mock, p.Spec))
	if len(answers) < c.Requests {
		return fmt.Errorf("%d of %d requests were not answered", c.Requests-len(answers), c.Requests)
	}
	if !c.Keep && !isTerminal(s.out) {
		fmt.Fprintf(s.out, "The status page was on http://%s. Run weir demo on a terminal, or with --keep, to look at it.\nBy hand it would have been:\n  %s\n",
			st.status, tryLine(st.proxy, "/openai", "openai"))
		return nil
	}
	fmt.Fprint(s.out, st.describe(p))
	fmt.Fprintln(s.out, "Ctrl-C ends it.")
	return st.Wait(ctx)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
