// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	here := binaryAt(t, filepath.Join(root, "project", installed))
	beside := binaryAt(t, filepath.Join(root, "opt", "weir", installed))
	other := binaryAt(t, filepath.Join(root, "envoy"))
	deep := filepath.Join(root, "project", "a", "b")
	program := filepath.Join(root, "opt", "weir", "bin")
	must(t, os.MkdirAll(deep, 0o700))
	plain := filepath.Join(root, "plain")
	must(t, os.WriteFile(plain, nil, 0o600))

	for name, c := range map[string]struct {
		env, inPath string
		roots       []string
		want        string
		err         string
	}{
		"named":                    {env: other, roots: []string{deep}, want: other},
		"named wrongly":            {env: root + "/none", roots: []string{deep}, err: "ENVOY_PATH: stat " + root + "/none"},
		"named, no program":        {env: plain, err: "permission denied"},
		"named, a folder":          {env: root, err: "permission denied"},
		"above the folder":         {roots: []string{deep, program}, inPath: other, want: here},
		"above the program":        {roots: []string{root, program}, inPath: other, want: beside},
		"in PATH":                  {roots: []string{root}, inPath: other, want: other},
		"nowhere: says what to do": {roots: []string{root}, err: "make .tools/envoy"},
	} {
		t.Run(name, func(t *testing.T) {
			f := finder{roots: c.roots, getenv: func(string) string { return c.env }, lookPath: func(string) (string, error) {
				if c.inPath == "" {
					return "", errors.New("not in PATH")
				}
				return c.inPath, nil
			}}
			got, err := f.find()
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q in it", err, c.err)
			}
		})
	}
}

func TestVersionIsPinned(t *testing.T) {
	if Version != "1.40.0" || !strings.Contains(requirements, "--hash=sha256:") {
		t.Errorf("version %q of %q", Version, requirements)
	}
	if !SameMinor("1.40.0", "1.40.3") || SameMinor("1.40.0", "1.41.0") || SameMinor("1.4.0", "1.40.0") {
		t.Error("SameMinor")
	}
}

func TestVersionOf(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"envoy  version: 0123abc/1.38.2/Clean/RELEASE/BoringSSL": "1.38.2",
		"curl 8.1.0": "",
	} {
		path := filepath.Join(dir, "program")
		must(t, os.WriteFile(path, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o700))
		got, err := VersionOf(t.Context(), path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// binaryAt makes an executable file.
func binaryAt(t *testing.T, path string) string {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, nil, 0o700))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
