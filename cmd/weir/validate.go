// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirproxy/weir/policyfile"
)

type validateCmd struct {
	File string `arg:"" help:"The policy; - is standard input." type:"path"`
}

// Help is shown by weir validate --help.
func (validateCmd) Help() string {
	return "Exit code 0: the policy is good; 2: it is not. Notices say what is accepted but worth knowing."
}

func (c *validateCmd) Run(s streams) error {
	r, err := readPolicy(c.File, s)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range r.Policy.Providers {
		names = append(names, p.Name)
	}
	fmt.Fprintf(s.out, "%s is good, for %s.\n", c.File, strings.Join(names, ", "))
	return nil
}

func parsePolicy(file string, s streams) (*policyfile.Result, error) {
	if file != "-" {
		return policyfile.Read(file)
	}
	data, err := io.ReadAll(io.LimitReader(s.in, policyfile.MaxSize+1))
	if err != nil {
		return nil, err
	}
	return policyfile.Parse("standard input", data)
}

// readPolicy reads a policy and prints its notices. What is wrong with it is a usage error.
func readPolicy(file string, s streams) (*policyfile.Result, error) {
	r, err := parsePolicy(file, s)
	if err != nil {
		n := len(policyfile.Errors(err))
		if n == 0 {
			return nil, usageError{err}
		}
		what := "errors"
		if n == 1 {
			what = "error"
		}
		return nil, usagef("the policy has %d %s:\n  %s", n, what, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	for _, n := range r.Notices {
		fmt.Fprintln(s.err, "note:", n)
	}
	return r, nil
}
