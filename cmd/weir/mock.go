// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirproxy/weir/internal/mock"
)

type mockCmd struct {
	Listen  string        `help:"Address to listen on." default:"127.0.0.1:9000"`
	RPM     int64         `help:"Requests a minute for each model; 0: no limit."`
	TPM     int64         `help:"Tokens a minute for each model; 0: no limit."`
	Window  time.Duration `help:"Length of the window that the limits are for." default:"1m"`
	Sliding bool          `help:"Hold the limits over any window, instead of refilling all the time."`
	Latency time.Duration `help:"Time before the first byte of an answer."`
	Usage   string        `help:"Tokens of output: full, a fraction of the declared maximum such as 0.05, or none, null, zero, negative, huge for what usage says." default:"full"`
	Fail    string        `help:"Failures, such as 429:0.1,503:0.05,reset:0.01,slow:2s:0.1." placeholder:"SPEC"`
}

// Help is shown by weir mock --help.
func (mockCmd) Help() string {
	return "It speaks OpenAI's and Anthropic's API. GET /stats says what it admitted and refused, POST /control changes it.\n\n" +
		"Example:\n\n  weir mock --tpm 100000 --fail 429:0.01 &\n  curl -s 127.0.0.1:9000/v1/chat/completions -H 'content-type: application/json' \\\n    -d '{\"model\":\"gpt-4o\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'"
}

func (c *mockCmd) Run(ctx context.Context, s streams) error {
	config, err := c.config()
	if err != nil {
		return usageError{err}
	}
	m, err := mock.New(config)
	if err != nil {
		return usageError{err}
	}
	if err := requireLoopback(c.Listen); err != nil {
		return err
	}
	l, server, err := m.Listen(c.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	fmt.Fprintf(s.out, "mock provider on http://%s, statistics on http://%s/stats\n", l.Addr(), l.Addr())
	return serveUntil(ctx, server, l)
}

func (c *mockCmd) config() (config mock.Config, err error) {
	config = mock.Config{RPM: c.RPM, TPM: c.TPM, Window: c.Window, Latency: c.Latency}
	if c.Sliding {
		config.Mode = mock.ModeSliding
	}
	if config.Usage, err = mock.ParseUsage(c.Usage); err != nil {
		return config, err
	}
	config.Fail, err = mock.ParseFail(c.Fail)
	return config, err
}
