// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/weirproxy/weir/internal/mock"
	"github.com/weirproxy/weir/policyfile"
)

type upCmd struct {
	Policy string `required:"" help:"The policy." type:"path" placeholder:"FILE"`
	Listen string `help:"Address where requests are taken." default:"127.0.0.1:10000"`
	statusFlag
	Workers  int    `help:"Envoy's worker threads." default:"2"`
	Mock     bool   `help:"Put a mock provider behind every upstream."`
	LogLevel string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	EnvoyLog string `help:"File for Envoy's own log, with the lines that the policy's log asks for." type:"path" placeholder:"FILE"`
}

// Help is shown by weir up --help.
func (upCmd) Help() string {
	return "It is ready, and able to admit a burst, when GET /readyz on the status address says 200. Ctrl-C ends everything.\n\n" +
		"Examples:\n\n  weir up --policy policy.yaml\n  weir up --policy policy.yaml --mock --listen 127.0.0.1:0"
}

func (c *upCmd) Run(ctx context.Context, s streams) error {
	o, done, err := c.options(s)
	if err != nil {
		return err
	}
	defer done()
	policy, err := readPolicy(c.Policy, s)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.err, "Starting Envoy; it compiles the filter first, which takes a few seconds.")
	st, err := startStack(ctx, o)
	if err != nil {
		return err
	}
	defer st.Close()
	fmt.Fprint(s.out, st.describe(policy))
	return st.Wait(ctx)
}

// options checks what the user wrote before anything is started.
func (c *upCmd) options(s streams) (o stackOptions, done func(), err error) {
	if err := requireLoopback(append(c.Status, c.Listen)...); err != nil {
		return o, nil, err
	}
	if c.Workers < 1 {
		return o, nil, usagef("--workers %d: there must be at least one", c.Workers)
	}
	envoyLog, done, err := openLog(c.EnvoyLog)
	if err != nil {
		return o, nil, err
	}
	o = stackOptions{
		policyFile: c.Policy, listen: c.Listen, status: c.statusFlag, workers: c.Workers,
		log: newLogger(s.err, c.LogLevel), envoyLog: envoyLog,
	}
	if c.Mock {
		o.mock = new(mock.Config)
	}
	return o, done, nil
}

func openLog(file string) (io.Writer, func(), error) {
	if file == "" {
		return nil, func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, nil, usageError{err}
	}
	return f, func() { f.Close() }, nil
}

func newLogger(w io.Writer, level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // kong has checked it
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}

// describe says where everything is, and a line to try.
func (s *stack) describe(p *policyfile.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir is ready.\n  requests  http://%s\n", s.proxy)
	for _, pr := range p.Policy.Providers {
		fmt.Fprintf(&b, "            %s/  %s\n", pr.Prefix, pr.Name)
	}
	fmt.Fprintf(&b, "  status    http://%s\n  envoy     http://%s\n", s.status, s.admin)
	if s.mock != nil {
		fmt.Fprintf(&b, "  mock      http://%s/stats\n", s.mockAddr)
	}
	for _, pr := range p.Policy.Providers {
		if line := tryLine(s.proxy, pr.Prefix, pr.Dialect); line != "" {
			fmt.Fprintf(&b, "Try:\n  %s\n", line)
			break
		}
	}
	return b.String()
}

// tryLine is a request to send by hand.
func tryLine(proxy, prefix, dialect string) string {
	path, model := "/v1/chat/completions", "gpt-4o"
	switch dialect {
	case "anthropic":
		path, model = "/v1/messages", "claude-sonnet-4-5"
	case "openai":
	default:
		return ""
	}
	return fmt.Sprintf(`curl -i http://%s%s%s -H 'content-type: application/json' -H 'x-tenant: acme' \
    -d '{"model":"%s","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}'`, proxy, prefix, path, model)
}
