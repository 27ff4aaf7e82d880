// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirproxy/weir/internal/mock"
)

type benchTokensCmd struct {
	Texts    string `help:"Lines of JSON, each with a text, from which bodies are put together; without it, the sources and documents of the installed Go." type:"existingfile"`
	Model    string `help:"Model that is asked for; its name says how tokens are counted." default:"gpt-4o"`
	Requests int    `help:"Pairs of requests for each size." default:"400"`
}

// Help is shown by weir bench tokens --help.
func (benchTokensCmd) Help() string {
	return "Each body is sent twice: by a tenant whose limits are hardly used, so that the filter reserves an upper bound and counts nothing, and by one whose in_flight limit is so small that it counts always. The difference of the 10th percentiles is what counting takes."
}

// benchTokensPolicy: with fewer than 8 calls in flight no limit is ever hardly used (policy/ample.go).
const benchTokensPolicy = `
apiVersion: weir/v1
trust: [all]
providers:
  openai: {upstream: "http://127.0.0.1:1", prefix: /, models: {"*": {rpm: 1_000_000_000, tpm: 1_000_000_000_000}}}
limits:
  tenant: {default: {tpm: 1_000_000_000_000}, near: {tpm: 1_000_000_000_000, in_flight: 7}}
`

func (c *benchTokensCmd) Run(ctx context.Context, s streams) error {
	texts, err := c.read(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(benchTokensPolicy), 0o644); err != nil {
		return err
	}
	st, err := startStack(ctx, stackOptions{
		policyFile: file, listen: "127.0.0.1:0", status: statusFlag{[]string{"127.0.0.1:0"}}, workers: 1,
		mock: new(mock.Config), log: slog.New(slog.DiscardHandler), envoyLog: io.Discard,
	})
	if err != nil {
		return err
	}
	defer st.Close()
	fmt.Fprintf(s.out, "%8s %14s %14s %12s %10s\n", "body", "not counted µs", "counted µs", "counting µs", "ns a byte")
	first := 0.0
	for _, kb := range []int{2, 8, 60, 256} {
		bound, counted, err := c.measure(ctx, st.proxy, texts, kb<<10)
		if err != nil {
			return err
		}
		extra, slope := counted-bound, "" // over the smallest body, so that what a count costs by itself is left out
		if kb == 2 {
			first = extra
		} else {
			slope = fmt.Sprintf("%.1f", (extra-first)*1000/float64((kb-2)<<10))
		}
		fmt.Fprintf(s.out, "%5d KB %14.0f %14.0f %12.0f %10s\n", kb, bound, counted, extra, slope)
	}
	return nil
}

// measure gives how long a request takes whose tokens are not counted, and are, in microseconds: the 10th percentiles, for
// whatever else the machine does only adds.
func (c *benchTokensCmd) measure(ctx context.Context, addr string, texts []string, size int) (bound, counted float64, err error) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var times [2][]time.Duration
	const warmUp = 150 // more than the first of a model, which are always counted
	for i := range c.Requests + warmUp {
		body := c.body(texts, size)
		for k, tenant := range []string{"far", "near"} {
			d, err := benchOnce(ctx, client, addr, tenant, body)
			if err != nil {
				return 0, 0, err
			}
			if i >= warmUp {
				times[k] = append(times[k], d)
			}
		}
	}
	return micros(quantile(times[0], 0.1)), micros(quantile(times[1], 0.1)), nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// body is a request of about so many bytes of text, taken from random places.
func (c *benchTokensCmd) body(texts []string, size int) string {
	var b strings.Builder
	for b.Len() < size {
		t := texts[rand.IntN(len(texts))]
		i := rand.IntN(len(t))
		for !utf8.RuneStart(t[i]) {
			i--
		}
		j := min(len(t), i+min(4096, size-b.Len()))
		for j < len(t) && !utf8.RuneStart(t[j]) {
			j++
		}
		b.WriteString(t[i:j])
	}
	text, _ := json.Marshal(b.String()) // a string
	return fmt.Sprintf(`{"model":%q,"max_tokens":100,"messages":[{"role":"user","content":%s}]}`, c.Model, text)
}

// read reads the texts.
func (c *benchTokensCmd) read(ctx context.Context) (texts []string, err error) {
	if c.Texts == "" {
		return goTexts(ctx)
	}
	f, err := os.Open(c.Texts)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for {
		var x struct{ Text string }
		if err := d.Decode(&x); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Texts, err)
		}
		if x.Text != "" {
			texts = append(texts, x.Text)
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s: no line has a text", c.Texts)
	}
	return texts, nil
}

// goTexts are sources, documents and data that come with Go.
func goTexts(ctx context.Context) (texts []string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("no Go found, so --texts is needed: %w", err)
	}
	err = filepath.WalkDir(strings.TrimSpace(string(root)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || len(texts) >= 3000 {
			return err
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".html", ".json", ".js", ".txt":
			b, err := os.ReadFile(path)
			if err == nil && len(b) > 0 && utf8.Valid(b) {
				texts = append(texts, string(b[:min(len(b), 200_000)]))
			}
		}
		return nil
	})
	return texts, err
}
