// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNotFound is what [Find] says where there is no Envoy.
var ErrNotFound = errors.New("no Envoy found: run `make .tools/envoy`, or set ENVOY_PATH to an Envoy " + Version + " binary")

// installed is where hack/get-envoy.sh puts Envoy.
var installed = filepath.Join(".tools", "envoy", "bin", "envoy")

// Find gives the path of an Envoy: ENVOY_PATH; else .tools/envoy/bin/envoy in or above the working directory, or in or above
// the directory of this program; else envoy in PATH. [Run] warns if its version is not [Version].
func Find() (string, error) {
	f := finder{getenv: os.Getenv, lookPath: exec.LookPath}
	if wd, err := os.Getwd(); err == nil {
		f.roots = append(f.roots, wd)
	}
	if exe, err := os.Executable(); err == nil {
		f.roots = append(f.roots, filepath.Dir(exe))
	}
	return f.find()
}

// A finder is Find with what it takes from the process.
type finder struct {
	getenv   func(string) string
	lookPath func(string) (string, error)
	roots    []string
}

func (f *finder) find() (string, error) {
	if p := f.getenv("ENVOY_PATH"); p != "" {
		// No other place is tried: who names a binary wants that one.
		if err := executable(p); err != nil {
			return "", fmt.Errorf("ENVOY_PATH: %w", err)
		}
		return filepath.Abs(p)
	}
	for _, root := range f.roots {
		if p := above(root); p != "" {
			return p, nil
		}
	}
	if p, err := f.lookPath("envoy"); err == nil {
		return filepath.Abs(p)
	}
	return "", ErrNotFound
}

// above looks for an installed Envoy in a directory and its parents.
func above(dir string) string {
	for {
		if p := filepath.Join(dir, installed); executable(p) == nil {
			return p
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return &fs.PathError{Op: "execute", Path: path, Err: fs.ErrPermission}
	}
	return nil
}
