// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestOCI has another's code read and check images: as an OCI layout, and as docker load reads it.
func TestOCI(t *testing.T) {
	for _, i := range []image{
		{name: "weir", version: "1.2.3", system: "linux", arch: "arm64", entrypoint: []string{"/weir"}, user: "65532:65532", files: []layerFile{
			{name: "weir", mode: 0o755, content: []byte("the binary")},
		}},
		{name: "weir-wasm", version: "1.2.3", system: "wasip1", arch: "wasm", files: []layerFile{
			{name: "plugin.wasm", mode: 0o644, content: []byte("wasm")}, {name: "weir-1.wasm", mode: 0o644, link: "plugin.wasm"},
		}},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "image.tar")
		if err := i.write(file); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range untar(t, b) {
			name = filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		index, err := ocilayout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", i.name, err)
		}
		docker, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(docker); err != nil {
			t.Errorf("%s, as docker load reads it: %v", i.name, err)
		}
		config, err := docker.ConfigFile()
		if err != nil || !config.Platform().Satisfies(v1.Platform{OS: i.system, Architecture: i.arch}) {
			t.Errorf("%s: %v %v", i.name, config.Platform(), err)
		}
	}
}
