// SPDX-License-Identifier: Apache-2.0

// Command weir is the control plane of weir, the filter that it embeds, and the tools around them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // wrong words, a bad policy, an address that may not be used
)

// cli is all commands.
type cli struct {
	Up         upCmd         `cmd:"" help:"Run control plane, Envoy and filter on this machine."`
	Demo       demoCmd       `cmd:"" help:"Run everything with a mock provider, send a burst and show who got what."`
	Serve      serveCmd      `cmd:"" help:"Run the control plane alone."`
	Init       initCmd       `cmd:"" help:"Write a policy to begin with."`
	Validate   validateCmd   `cmd:"" help:"Check a policy: every error with file, line, field and what to write instead."`
	Schema     schemaCmd     `cmd:"" help:"Print the JSON Schema of policies, for editors."`
	Explain    explainCmd    `cmd:"" help:"Say which limits a request meets, what it costs and why, and what becomes of it."`
	Learn      learnCmd      `cmd:"" help:"Show limits that providers tell of, and write them into the policy."`
	Canary     canaryCmd     `cmd:"" help:"Run a synthetic agent that says when what it meets shifts."`
	Usage      usageCmd      `cmd:"" help:"Add up what was used, by day and tenant, from logs."`
	Replay     replayCmd     `cmd:"" help:"Say what a policy would have done with the requests of a log, and which limits would do."`
	Estimate   estimateCmd   `cmd:"" help:"Say what a request would cost in tokens, as one line of JSON."`
	Top        topCmd        `cmd:"" help:"Watch what is used of which limit."`
	Enforce    enforceCmd    `cmd:"" help:"One switch for everything: on, shadow or off, on all Envoys at once."`
	Grant      grantCmd      `cmd:"" help:"Raise a limit of a tenant for a time."`
	Simulate   simulateCmd   `cmd:"" help:"Run an experiment or a scenario in virtual time, on the same code as the filter."`
	Bootstrap  bootstrapCmd  `cmd:"" help:"Print what to put into an Envoy."`
	Wasm       wasmCmd       `cmd:"" help:"Write the filter to standard output."`
	Mock       mockCmd       `cmd:"" help:"Run a mock LLM provider with limits of its own."`
	Bench      benchCmd      `cmd:"" help:"Measure."`
	Completion completionCmd `cmd:"" help:"Print what has bash, zsh or fish complete commands and flags."`
	Man        manCmd        `cmd:"" help:"Print the manual page, or write one for each command."`
	Version    versionCmd    `cmd:"" help:"Print versions."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// A usageError is something that the user wrote wrong: it exits with 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// A silentError is one of which a command has said all there is to say: it exits with 1.
type silentError string

func (e silentError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run runs one command line and gives its exit code.
func run(ctx context.Context, args []string, s streams) int {
	var c cli
	code := -1
	parser, err := kong.New(&c,
		kong.Name("weir"),
		kong.Description("weir keeps a mesh of agents within the limits of LLM providers, in Envoy.\n\nTry: weir up --policy policy.yaml --mock"),
		kong.Writers(s.out, s.err),
		kong.Exit(func(n int) { code = n }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
		kong.UsageOnError(),
	)
	if err != nil {
		fmt.Fprintln(s.err, "weir:", err)
		return exitFailed
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args[0] = "version"
	}
	command, err := parser.Parse(args)
	switch {
	case code >= 0: // --help was answered
		return code
	case err != nil:
		fmt.Fprintln(s.err, "weir:", err)
		fmt.Fprintln(s.err, "Run weir --help, or weir COMMAND --help, for what there is.")
		return exitUsage
	}
	return exitCode(command.Run(parser), s)
}

// exitCode prints an error and gives its code. All errors end here, so that no other place prints them.
func exitCode(err error, s streams) int {
	var usage usageError
	var silent silentError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return exitOK
	case errors.As(err, &silent):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(s.err, "weir:", usage.error)
		return exitUsage
	}
	fmt.Fprintln(s.err, "weir:", err)
	return exitFailed
}
