// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed all:embedded
var embedded embed.FS

// errNoWasm is what a binary says that was built by go build alone.
var errNoWasm = errors.New("this binary has no filter in it: build it with make build")

// filterWasm is the compiled filter, and the first 8 hexadecimal digits of its SHA-256, by which its file is named.
func filterWasm() (code []byte, hash string, err error) {
	code, err = embedded.ReadFile("embedded/weir.wasm")
	if err != nil {
		return nil, "", errNoWasm
	}
	sum := sha256.Sum256(code)
	return code, hex.EncodeToString(sum[:4]), nil
}

// writeWasm writes the filter into a folder, under its name.
func writeWasm(dir string) (path, hash string, err error) {
	code, hash, err := filterWasm()
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, "weir-"+hash+".wasm")
	if err := os.WriteFile(path, code, 0o644); err != nil {
		return "", "", fmt.Errorf("cannot write the filter: %w", err)
	}
	return path, hash, nil
}

type wasmCmd struct {
	Dir string `help:"Write to this folder instead, as weir-HASH.wasm, and print the path." type:"path"`
}

// Help is shown by weir wasm --help.
func (wasmCmd) Help() string {
	return "Examples:\n\n  weir wasm > weir.wasm\n  weir wasm --dir /etc/envoy"
}

func (c *wasmCmd) Run(s streams) error {
	if c.Dir != "" {
		path, _, err := writeWasm(c.Dir)
		if err == nil {
			fmt.Fprintln(s.out, path)
		}
		return err
	}
	code, _, err := filterWasm()
	if err != nil {
		return err
	}
	_, err = s.out.Write(code)
	return err
}
