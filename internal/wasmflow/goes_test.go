// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// A program with goroutines, panics, growing stacks and much else within loops prints the same when it is written anew and in another order.
func TestGoDoesTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "goes.wasm")
	compile := exec.Command("go", "build", "-o", file, "./testdata/goes")
	compile.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := read(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.restructure(); err != nil {
		t.Fatal(err)
	}
	m.keepCalls()
	m.place(slices.Sorted(maps.Keys(m.names))) // another order of nearly all
	m.dropNames()
	want, got := output(t, before), output(t, m.write())
	if !strings.HasSuffix(want, "done\n") || got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// output is what a program prints, and how it fails.
func output(t *testing.T, program []byte) string {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out bytes.Buffer
	c := wazero.NewModuleConfig().WithStdout(&out).WithStderr(&out).WithSysNanotime().WithSysWalltime().WithSysNanosleep()
	if _, err := r.InstantiateWithConfig(ctx, program, c); err != nil && !strings.HasSuffix(err.Error(), "exit_code(0)") {
		t.Error(err)
	}
	return out.String()
}
