// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReproducible builds one target twice, from two folders and with another setting of Go, and compares.
func TestReproducible(t *testing.T) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	copySource(t, source, other)
	var first []byte
	for _, from := range []string{source, other} {
		if from == other {
			t.Setenv("GOAMD64", "v3")
			t.Setenv("GOFLAGS", "-tags=another")
		}
		file := filepath.Join(t.TempDir(), "weir")
		if err := build(from, targets[0], file); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Error("another folder makes another binary")
		}
		if bytes.Contains(b, []byte(source)) {
			t.Error("the binary tells where it was built")
		}
		first = b
	}
	file := filepath.Join(t.TempDir(), "weir")
	if err := os.WriteFile(file, first, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(source)
	testBOM(t, file)
}

// copySource copies what git has, and the filter.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `git ls-files -z --cached --others --exclude-standard -- ':!e2e' ':!docs' | tar --null --files-from - --create | tar --extract --directory "$0" && cp cmd/weir/embedded/weir.wasm "$0/cmd/weir/embedded/"`, to)
	cmd.Dir = from
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func testBOM(t *testing.T, binary string) {
	t.Helper()
	first, err := bomOf("1.2.3", binary)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := bomOf("1.2.3", binary); err != nil || !bytes.Equal(first, second) {
		t.Errorf("another list each time (%v)", err)
	}
	var bom struct {
		BOMFormat, SpecVersion string
		Components             []component
	}
	if err := json.Unmarshal(first, &bom); err != nil || bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.5" {
		t.Fatalf("%v: %s %s", err, bom.BOMFormat, bom.SpecVersion)
	}
	missing := map[string]bool{"github.com/envoyproxy/go-control-plane/envoy": true, "std": true, "dictionary of brotli": true}
	for _, c := range bom.Components {
		delete(missing, c.Name)
		if c.Type == "library" && (!strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") || strings.HasSuffix(c.PURL, "@")) {
			t.Errorf("%s: %q", c.Name, c.PURL)
		}
	}
	if len(missing) > 0 {
		t.Errorf("does not say %v", missing)
	}
}

// TestImage reads an image as the specification says: each blob by its digest, the layer by the digest of what is in it.
func TestImage(t *testing.T) {
	i := image{name: "weir", version: "1.2.3", system: "linux", arch: "arm64", entrypoint: []string{"/weir"}, user: "65532:65532", files: []layerFile{
		{name: "weir", mode: 0o755, content: []byte("the binary")}, {name: "again", mode: 0o755, link: "weir"},
	}}
	path := filepath.Join(t.TempDir(), "image.tar")
	var first []byte
	for range 2 {
		if err := i.write(path); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || first != nil && !bytes.Equal(first, b) {
			t.Fatalf("another image (%v)", err)
		}
		first = b
	}
	files := untar(t, first)
	for name, b := range files {
		if sum, isBlob := strings.CutPrefix(name, "blobs/sha256/"); isBlob && digest(b) != "sha256:"+sum {
			t.Errorf("%s has the digest %s", name, digest(b))
		}
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		OS, Architecture string
		Config           struct{ Entrypoint []string }
		RootFS           struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	read(t, files["index.json"], &index)
	read(t, files[blob(index.Manifests[0].Digest)], &manifest)
	read(t, files[blob(manifest.Config.Digest)], &config)
	z, err := gzip.NewReader(bytes.NewReader(files[blob(manifest.Layers[0].Digest)]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || config.Config.Entrypoint[0] != "/weir" || config.RootFS.DiffIDs[0] != digest(layer) {
		t.Errorf("%+v", config)
	}
	if got := untar(t, layer); string(got["weir"]) != "the binary" || len(got) != 2 {
		t.Errorf("the layer has %q", got)
	}
	var docker []struct {
		Config           string
		Layers, RepoTags []string
	}
	read(t, files["manifest.json"], &docker)
	if files[docker[0].Config] == nil || files[docker[0].Layers[0]] == nil || docker[0].RepoTags[0] != "weir:1.2.3" {
		t.Errorf("%+v", docker)
	}
}

func read(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
}

func untar(t *testing.T, b []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// The filter's image and the sums, of a filter that is none.
func TestFilterAndSums(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(embeddedWasm), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(embeddedWasm, []byte("wasm"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &releaser{dir: ".", version: "1.2.3"}
	if err := os.Mkdir("out", 0o755); err != nil {
		t.Fatal(err)
	}
	r.dir = "out"
	if err := r.filter(); err != nil {
		t.Fatal(err)
	}
	if err := r.sums(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = "out"
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), ": OK") != 2 || !strings.Contains(string(out), "weir-wasm.oci.tar: OK") {
		t.Errorf("%v\n%s", err, out)
	}
}
