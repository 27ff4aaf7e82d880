// SPDX-License-Identifier: Apache-2.0

// Package arch has no code: its tests hold the project to its own rules.
package arch

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirproxy/weir/"

// cmd imports filter for tools that run it without an Envoy (RATIONALE.md, "Why does the command line run the filter?").
//
// mayImport says which of our packages a folder may import, beside its own parts (CONTRIBUTING.md, "Imports point one way").
var mayImport = map[string][]string{
	"policy":                {},
	"dialect":               {"policy"},
	"filter":                {"dialect", "policy"},
	"policyfile":            {"policy"},
	"envoy":                 {"policy"},
	"controlplane":          {"policyfile", "envoy", "policy"},
	"internal/mock":         {},
	"internal/arch":         {},
	"internal/browser":      {},
	"internal/faults":       {},
	"internal/held":         {},
	"internal/pusher":       {"controlplane", "policyfile", "policy"},
	"internal/release":      {},
	"internal/site":         {},
	"internal/wasmflow":     {},
	"internal/tokensreport": {"policy", "internal/held"},
	"e2e":                   {"envoy"},
	"cmd":                   {"controlplane", "policyfile", "dialect", "envoy", "internal/mock", "policy", "filter"},
}

// standardOnly may import nothing but the standard library and policy.
var standardOnly = []string{"policy", "internal/mock"}

func folderOf(pkg string) string {
	rel := strings.TrimPrefix(pkg, module)
	for f := range mayImport {
		if rel == f || strings.HasPrefix(rel, f+"/") {
			return f
		}
	}
	return rel
}

// imports lists each package of ours and what it imports, tests left out.
func imports(t *testing.T) map[string][]string {
	m := map[string][]string{}
	for _, env := range []string{"GOOS=linux", "GOOS=wasip1 GOARCH=wasm"} {
		args := []string{"list", "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./..."}
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), strings.Fields(env)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			f := strings.Fields(line)
			m[f[0]] = append(m[f[0]], f[1:]...)
		}
	}
	return m
}

func TestImportsPointOneWay(t *testing.T) {
	for pkg, imported := range imports(t) {
		from := folderOf(pkg)
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s is in no folder that has rules: add it to mayImport", pkg)
		}
		for _, i := range imported {
			if strings.HasPrefix(i, module) {
				if to := folderOf(i); to != from && !slices.Contains(allowed, to) {
					t.Errorf("%s imports %s", pkg, i)
				}
				continue
			}
			if strings.Contains(strings.Split(i, "/")[0], ".") && slices.Contains(standardOnly, from) {
				t.Errorf("%s imports %s, but may use the standard library only", pkg, i)
			}
		}
	}
}

// The filter must stay small and self-contained: no network, no processes, no gRPC.
func TestFilterLinksNoNetwork(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./filter/wasm")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if dep == "net" || dep == "net/http" || dep == "os/exec" || strings.HasPrefix(dep, "google.golang.org/") {
			t.Errorf("the filter links %s", dep)
		}
	}
}

// Everything that the filter is made of must build for wasip1.
func TestBuildsForWasm(t *testing.T) {
	cmd := exec.Command("go", "build", "./policy/...", "./dialect", "./filter", "./filter/wasm")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// sources gives our own Go files below a folder, tests left out.
func sources(t *testing.T, folder string) (files []string) {
	err := filepath.WalkDir("../../"+folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// policy takes time as an argument, does no IO and starts nothing; filter neither blocks nor starts anything.
func TestPureCore(t *testing.T) {
	rules := map[string]*regexp.Regexp{
		"policy": regexp.MustCompile(`time\.(Now|Sleep|After|Tick|Since)\(|^\s*go func|^\s*"(os|net|net/http|log|log/slog|math/rand)"`),
		"filter": regexp.MustCompile(`time\.(Sleep|After|Tick)\(|^\s*go func|^\s*go [a-z]|SetSharedData\([^)]*, 0\)`),
	}
	for folder, bad := range rules {
		for _, file := range sources(t, folder) {
			if strings.Contains(file, "/gen/") || strings.Contains(file, "filtertest") {
				continue
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for lines, n := bufio.NewScanner(f), 1; lines.Scan(); n++ {
				if bad.MatchString(lines.Text()) {
					t.Errorf("%s:%d: %s", file, n, lines.Text())
				}
			}
		}
	}
}

// Every Go file names its licence.
func TestLicenceHeaders(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		data, err := os.ReadFile("../../" + name)
		if err != nil {
			continue // removed, not committed yet
		}
		if !strings.Contains(string(data[:min(len(data), 300)]), "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s has no SPDX header", name)
		}
	}
}

// Where a comment points to RATIONALE.md by a heading, the heading exists.
func TestRationaleHeadings(t *testing.T) {
	doc, err := os.ReadFile("../../RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	ref := regexp.MustCompile(`RATIONALE\.md,\s+(?://\s*)?"([^"]+)"`)
	for _, file := range sources(t, ".") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ref.FindAllStringSubmatch(string(data), -1) {
			heading := regexp.MustCompile(`\s*\n//\s*`).ReplaceAllString(m[1], " ")
			if !strings.Contains(string(doc), "\n## "+heading+"\n") {
				t.Errorf("%s points to %q in RATIONALE.md, which has no such heading", file, heading)
			}
		}
	}
}
