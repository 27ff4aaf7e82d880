// SPDX-License-Identifier: Apache-2.0

// Package envoytest runs real Envoys in tests.
package envoytest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/weirproxy/weir/envoy"
)

// Path gives the Envoy to test with. Without one the test fails: what only a real Envoy can show is not skipped.
func Path(t testing.TB) string {
	t.Helper()
	path, err := envoy.Find()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Plugin builds the stand-in for weir's filter, and gives the path of the wasm file, which is named by its hash.
func Plugin(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "standin.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, "github.com/weirproxy/weir/envoy/envoytest/standin")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	return Named(t, path)
}

// Named renames a wasm file as weir names it: by its hash.
func Named(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	named := filepath.Join(filepath.Dir(path), "weir-"+hex.EncodeToString(sum[:4])+".wasm")
	if err := os.Rename(path, named); err != nil {
		t.Fatal(err)
	}
	return named
}

// Run runs an Envoy with one worker until the test ends, and shows what it wrote if the test has failed.
func Run(t testing.TB, bootstrap []byte) *envoy.Process {
	t.Helper()
	return run(t, envoy.Run, bootstrap)
}

// Start is Run for an Envoy that is not going to be ready, or not yet.
func Start(t testing.TB, bootstrap []byte) *envoy.Process {
	t.Helper()
	return run(t, envoy.Start, bootstrap)
}

// A runner is envoy.Run or envoy.Start.
type runner func(context.Context, envoy.Options) (*envoy.Process, error)

func run(t testing.TB, how runner, bootstrap []byte) *envoy.Process {
	t.Helper()
	log := new(Log)
	p, err := how(t.Context(), envoy.Options{Path: Path(t), Bootstrap: bootstrap, Concurrency: 1, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if t.Failed() {
			t.Logf("Envoy wrote:\n%s", log.String())
		}
	})
	return p
}

// A Log keeps what is written to it. It may be read meanwhile.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
