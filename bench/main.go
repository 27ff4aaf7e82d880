// SPDX-License-Identifier: Apache-2.0

// Command bench measures weir beside its peers, in one run on one machine, and writes docs/benchmarks.md.
//
// It runs built artifacts only: bin/weir, a real Envoy, and what get.sh has put into the tools' folder. Peers take turns, so that
// what else the machine does meets all of them: read the ratios.
package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed intro.md
var intro string

//go:embed capacity.md
var capacityIntro string

func randomName() string { return strings.ToLower(rand.Text()) }

func main() {
	if len(os.Args) == 3 && os.Args[1] == "upstream" {
		l, err := net.Listen("tcp", os.Args[2])
		if err == nil {
			err = serveUpstream(l)
		}
		fail(err)
	}
	b := &bench{report: &report{}}
	out := flag.String("out", "", "file to write; standard output if empty")
	only := flag.String("only", "", "parts, by comma: latency,throughput,admission,outages,changes,estimates")
	flag.StringVar(&b.root, "root", ".", "the repository")
	flag.StringVar(&b.tools, "tools", ".tools/peers", "where get.sh has put the peers")
	flag.BoolVar(&b.short, "short", false, "all rows, from so few requests that the figures mean nothing")
	model := flag.Bool("capacity", false, "the capacity model, instead of the comparison")
	pushes := flag.Bool("pushes", false, "what pushes of shares cost: the last part of the capacity model alone, put into its place in the file")
	flag.BoolVar(&b.litellm, "litellm", false, "LiteLLM, too")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	run := func() (string, error) { return b.measure(ctx, *only, *model) }
	if *pushes {
		run = func() (string, error) { return b.measurePushes(ctx, *out) }
	}
	text, err := run()
	cancel()
	if err == nil && *out != "" {
		err = os.WriteFile(*out, []byte(text), 0o644)
	} else {
		fmt.Print(text)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// open makes a place for what is started; done ends all of it.
func (b *bench) open() (done func(), err error) {
	if b.dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
		return nil, err
	}
	if b.envoy = os.Getenv("ENVOY_PATH"); b.envoy == "" {
		b.envoy = filepath.Join(b.root, ".tools/envoy/bin/envoy")
	}
	return func() { b.close(); os.RemoveAll(b.dir) }, nil
}

// measure starts everything, takes all the figures, and ends everything.
func (b *bench) measure(ctx context.Context, only string, model bool) (text string, err error) {
	done, err := b.open()
	if err != nil {
		return "", err
	}
	defer done()
	started, before, about := time.Now(), machine(), intro
	if model {
		about, err = capacityIntro, b.capacity(ctx)
	} else {
		err = b.compare(ctx, only, started)
	}
	if err != nil {
		return b.report.String(), err
	}
	return fmt.Sprintf("%s\nMeasured %s in %v. At the beginning: %s. At the end: %s.\n%s", about, started.Format("2006-01-02"), time.Since(started).Round(time.Second), before, machine(), b.report), nil
}

// compare takes the figures of all peers.
func (b *bench) compare(ctx context.Context, only string, started time.Time) error {
	fmt.Fprintln(os.Stderr, "Starting all peers …")
	if err := b.startPeers(); err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"latency", b.latencies}, {"throughput", b.throughput}, {"admission", b.admission}, {"changes", b.changes}, {"outages", b.outages}, {"estimates", b.estimates}} {
		if only != "" && !strings.Contains(","+only+",", ","+part.name+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "%5.0f s: %s …\n", time.Since(started).Seconds(), part.name)
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until each peer has answered for a while.
func (b *bench) ready(ctx context.Context) error {
	client := newClient(1)
	body := chat(script{tag: "perf", prompt: 10, completion: 10}, 10, false, "hello")
	for _, p := range b.peers {
		good, end := 0, time.Now().Add(time.Minute)
		for good < 10 {
			a, err := send(ctx, client, p.addr, call{"perf", body})
			if err == nil && a.status == http.StatusOK {
				good++
				client.CloseIdleConnections() // the next one may meet another worker
				continue
			}
			if good = 0; time.Now().After(end) || ctx.Err() != nil {
				return fmt.Errorf("%s answers %d %s: %w", p.name, a.status, a.body, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
