// SPDX-License-Identifier: Apache-2.0

// Command wasmflow builds the filter: Go's compiler makes the WebAssembly, and this gives its functions the control flow that
// WebAssembly has, blocks, loops and branches, in place of a jump through a table for each step, and puts those first that a request runs
// through. See RATIONALE.md, "Why is the filter's control flow written anew?".
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	tags := flag.String("tags", "", "build tags")
	names := flag.Bool("names", false, "leave the names of functions in, and the functions where they were")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "Use, in the project's root: wasmflow [-tags TAGS] [-names] OUT") }
	if flag.Parse(); flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := build(*tags, *names, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "wasmflow:", err)
		os.Exit(1)
	}
}

// orderFile has the names of the functions that come first: see TestOrderOfFunctions in filter.
const orderFile = "filter/wasm/order.txt"

// build makes a file of the filter. The same source gives the same bytes, whatever git says: its hash is its name. Names of functions
// are needed here, and left out.
func build(tags string, names bool, out string) error {
	f, err := os.CreateTemp("", "weir-*.wasm")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	f.Close()
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-tags", tags, "-o", f.Name(), "./filter/wasm")
	compile.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	compile.Stdout, compile.Stderr = os.Stdout, os.Stderr
	if err := compile.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	m, err := read(b)
	if err != nil {
		return err
	}
	if err := m.restructure(); err != nil {
		return err
	}
	m.keepCalls()
	if names {
		return os.WriteFile(out, m.write(), 0o644)
	}
	first, err := os.ReadFile(orderFile)
	if err != nil {
		return err
	}
	m.place(strings.Split(string(first), "\n"))
	m.dropNames()
	return os.WriteFile(out, m.write(), 0o644)
}

// restructure writes each function anew that has a table of its own.
func (m *module) restructure() error {
	r, ok := m.runtime()
	if !ok || m.goType < 0 || m.voidType < 0 {
		return fmt.Errorf("it has no names of functions, or is not Go's")
	}
	for i, body := range m.bodies {
		if int(m.types[i]) != m.goType {
			continue
		}
		anew, lost, err := restructure(body, r)
		if err == nil && lost {
			err = fmt.Errorf("there is code to which nothing leads")
		}
		if err != nil {
			return fmt.Errorf("function %d: %w", m.imports+i, err)
		}
		if anew != nil {
			m.bodies[i] = anew
		}
	}
	return nil
}

// restructure gives a function's body anew; nil: there is nothing to win. lost: there is code to which nothing leads, so that something is
// not understood. A jump alone the compiler does leave where nobody needs it.
func restructure(body []byte, rt runtime) (anew []byte, lost bool, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case malformed:
			err = fmt.Errorf("%s", string(r))
		default:
			panic(r)
		}
	}()
	f := parse(body, rt)
	if f == nil {
		return nil, false, nil
	}
	start := f.resumes()
	f.oneWay(f.reversePostorder(start))
	if !f.analyse(start) {
		return nil, false, fmt.Errorf("a loop with several ways in")
	}
	for _, n := range f.nodes {
		lost = lost || n.position < 0 && n.does()
	}
	return f.write(start), lost, nil
}
