// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asked is what a driver is told of a call (e2e/clients/driver.py).
type asked struct {
	Model      string  `json:"model,omitempty"` // not the usual one
	Stream     bool    `json:"stream"`
	Usage      bool    `json:"usage"`                 // the stream's, as one asks the library for it
	Responses  bool    `json:"responses"`             // by that API of OpenAI's
	Timeout    float64 `json:"timeout,omitempty"`     // seconds
	NumRetries int     `json:"num_retries,omitempty"` // LiteLLM's own

	// These become headers.
	Class  string `json:"-"`
	Tree   string `json:"-"`
	Status int    `json:"-"` // with which the provider answers
}

func (a *asked) headers(tenant string) map[string]string {
	h := map[string]string{"x-tenant": tenant, "x-mock-tag": tenant}
	if a.Class != "" {
		h["x-priority"] = a.Class
	}
	if a.Tree != "" {
		h["x-request-tree"] = a.Tree
	}
	if a.Status != 0 {
		h["x-mock-status"] = fmt.Sprint(a.Status)
	}
	return h
}

// said is what a driver says of it.
type said struct {
	OK      bool    `json:"ok"`
	Error   string  `json:"error"` // the class of what was raised
	Status  int     `json:"status"`
	Message string  `json:"message"`
	Text    string  `json:"text"`
	Deltas  int     `json:"deltas"`
	Usage   bool    `json:"usage"`
	Seconds float64 `json:"seconds"`
}

// A driver is a program that makes calls with a client library, one for each line it is told.
type driver struct {
	client string
	tap    *tap
	in     io.Writer
	lines  chan string
}

// startDriver starts a driver, in whose command TAP stands for the tap's address.
func startDriver(t *testing.T, client string, tap *tap, command ...string) *driver {
	t.Helper()
	last := len(command) - 1
	command[last] = strings.ReplaceAll(command[last], "TAP", tap.addr)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	// LiteLLM would fetch a list of models and prices over the network.
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True")
	var stderr output
	cmd.Stderr = &stderr
	d := &driver{client: client, tap: tap, lines: make(chan string, 1)}
	var out io.Reader
	var err error
	if d.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			d.lines <- s.Text()
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		for range d.lines { // the context has ended it
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", client, tail(stderr.String(), 4000))
		}
	})
	return d
}

// ready waits until the library is loaded.
func (d *driver) ready(t *testing.T) {
	t.Helper()
	if line := d.line(t, time.Minute); line != "ready" {
		t.Fatalf("the driver of %s wrote %q", d.client, line)
	}
}

func (d *driver) line(t *testing.T, wait time.Duration) string {
	t.Helper()
	select {
	case line, ok := <-d.lines:
		if !ok {
			t.Fatalf("the driver of %s has ended", d.client)
		}
		return line
	case <-time.After(wait):
		t.Fatalf("the driver of %s says nothing for %v", d.client, wait)
	}
	return ""
}

// call has the client make one call.
func (d *driver) call(t *testing.T, a asked, tenant string) (s said) {
	t.Helper()
	line, err := json.Marshal(struct {
		asked
		MaxTokens int               `json:"max_tokens"`
		Headers   map[string]string `json:"headers"`
	}{a, answerWords, a.headers(tenant)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	line = []byte(d.line(t, 30*time.Second))
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return s
}
