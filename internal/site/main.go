// SPDX-License-Identifier: Apache-2.0

// Command site makes a site of the documentation, with Sphinx, which hack/get-site-tools.sh installs. What is in it, and in which
// order, is what docs/README.md links to. A link that leads nowhere, or a page that is in no list, is an error.
//
// It is run by make site, in the folder of go.mod.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// iconFile is the status page's icon.
const iconFile = "controlplane/page/icon.svg"

//go:embed conf.py
var conf []byte

//go:embed site.css
var css []byte

//go:embed site.js
var script []byte

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: site TOOLS DIR, in the folder of go.mod")
	}
	if err := build(".", os.Args[1], os.Args[2]); err != nil {
		log.Fatal("site: ", err)
	}
}

// build makes the site of a source at dir. Nothing that an earlier one has left stays.
func build(source, tools, dir string) error {
	version, err := os.ReadFile(filepath.Join(source, "cmd/weir/version.txt"))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "weir-site")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := prepare(source, tools, work); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	python, err := filepath.Abs(filepath.Join(tools, "python/bin/python"))
	if err != nil {
		return err
	}
	cmd := exec.Command(python, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet",
		"--conf-dir", work, "--doctree-dir", filepath.Join(work, "doctrees"), filepath.Join(work, "pages"), dir)
	cmd.Env = append(os.Environ(), "WEIR_VERSION="+strings.TrimSpace(string(version)), "SOURCE_DATE_EPOCH=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sphinx: %w\n%s", err, strings.ReplaceAll(string(out), work+"/", ""))
	}
	return os.Remove(filepath.Join(dir, ".buildinfo")) // for the next build, of which this knows nothing
}

// prepare puts into work what Sphinx reads.
func prepare(source, tools, work string) error {
	drawing, err := os.ReadFile(filepath.Join(tools, "mermaid.js"))
	if err != nil {
		return err
	}
	icon, err := os.ReadFile(filepath.Join(source, iconFile))
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"conf.py": conf, "icon.svg": icon, "static/site.css": css, "static/site.js": script, "static/mermaid.js": drawing,
	}
	if err := pages(source, files); err != nil {
		return err
	}
	for name, b := range files {
		file := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
