// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/weirproxy/weir/envoy"
)

// versionFile is the one place that says which version this is.
//
//go:embed version.txt
var versionFile string

type versionCmd struct{}

func (versionCmd) Run(s streams) error {
	_, hash, err := filterWasm()
	if err != nil {
		hash = "none"
	}
	fmt.Fprintf(s.out, "weir %s, filter %s, for Envoy %s, built with %s\n", version(), hash, envoy.Version, runtime.Version())
	return nil
}

// version is that of the file, with the commit where the build knows it.
func version() string {
	v := strings.TrimSpace(versionFile)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	said := map[string]string{}
	for _, s := range info.Settings {
		said[s.Key] = s.Value
	}
	commit := said["vcs.revision"]
	if commit == "" {
		return v
	}
	commit = commit[:min(len(commit), 12)]
	if said["vcs.modified"] == "true" {
		commit += " and changes"
	}
	return v + " (" + commit + ")"
}
