// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/weirproxy/weir/policyfile"
)

type validateCmd struct {
	File string `arg:"" help:"The policy." type:"path"`
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
	fmt.Fprintf(s.out, "%s is good: %d providers.\n", c.File, len(r.Policy.Providers))
	return nil
}

// readPolicy reads a policy and prints its notices. What is wrong with it is a usage error.
func readPolicy(file string, s streams) (*policyfile.Result, error) {
	r, err := policyfile.Read(file)
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
