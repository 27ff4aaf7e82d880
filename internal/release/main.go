// SPDX-License-Identifier: Apache-2.0

// Command release writes what a release has: binaries, the filter, images of both, what they are made of, and checksums. The same
// source and the same Go give the same bytes.
//
// It is run by make release, which has built the filter before.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// targets are what binaries are built for, as GOOS-GOARCH. Those of Linux become images, too.
var targets = []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}

const embeddedWasm = "cmd/weir/embedded/weir.wasm"

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: release DIR, in the folder of go.mod")
	}
	if err := release(os.Args[1]); err != nil {
		log.Fatal("release: ", err)
	}
}

func release(dir string) error {
	version, err := os.ReadFile("cmd/weir/version.txt")
	if err != nil {
		return err
	}
	r := &releaser{dir: dir, version: strings.TrimSpace(string(version))}
	if err := os.RemoveAll(dir); err != nil { // what an earlier one has left would be in the sums
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, step := range []func() error{r.binaries, r.filter, r.bom, r.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type releaser struct{ dir, version string }

func (r *releaser) path(name string) string { return filepath.Join(r.dir, name) }

func (r *releaser) binaries() error {
	for _, target := range targets {
		file := r.path("weir-" + target)
		if err := build(".", target, file); err != nil {
			return err
		}
		system, arch, _ := strings.Cut(target, "-")
		if system != "linux" {
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		i := image{
			name: "weir", version: r.version, system: system, arch: arch,
			files:      []layerFile{{name: "weir", mode: 0o755, content: code}},
			entrypoint: []string{"/weir"}, user: "65532:65532",
		}
		if err := i.write(r.path("weir-" + target + ".oci.tar")); err != nil {
			return err
		}
	}
	return nil
}

// build builds the command for a target. Neither the place of the source nor the state of git shows in what comes out, nor how Go is set
// up on this machine.
func build(source, target, file string) error {
	system, arch, _ := strings.Cut(target, "-")
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./cmd/weir")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", target, err, out)
	}
	return nil
}

// filter writes the filter by itself, and as an image: plugin.wasm is the name that Istio and Envoy Gateway look for, the other
// one is weir's.
func (r *releaser) filter() error {
	code, err := os.ReadFile(embeddedWasm)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(code)
	name := "weir-" + hex.EncodeToString(sum[:4]) + ".wasm"
	if err := os.WriteFile(r.path(name), code, 0o644); err != nil {
		return err
	}
	i := image{
		name: "weir-wasm", version: r.version, system: "wasip1", arch: "wasm",
		files: []layerFile{{name: "plugin.wasm", mode: 0o644, content: code}, {name: name, mode: 0o644, link: "plugin.wasm"}},
	}
	return i.write(r.path("weir-wasm.oci.tar"))
}

func (r *releaser) bom() error {
	b, err := bomOf(r.version, r.path("weir-"+targets[0]))
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("weir.cdx.json"), b, 0o644)
}

func (r *releaser) sums() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		b, err := os.ReadFile(r.path(e.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(b), e.Name()))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(r.path("SHA256SUMS"), []byte(strings.Join(lines, "")), 0o644)
}
