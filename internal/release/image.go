// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// An image is a container image of one layer.
type image struct {
	name, version, system, arch string
	files                       []layerFile
	entrypoint                  []string
	user                        string
}

// A layerFile is a file of the layer, or another name of one before it.
type layerFile struct {
	name    string
	mode    int64
	content []byte
	link    string
}

// Media types of the OCI image specification.
const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// write writes the image as an OCI layout in one file. docker load, which goes by manifest.json, takes it, too.
func (i *image) write(path string) error {
	plain, err := archive(i.files)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	l := &layout{files: []layerFile{{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}}
	layer := l.add(layerType, packed.Bytes())
	config := l.json(configType, i.config(plain))
	manifest := l.json(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layer},
	})
	manifest.Platform = map[string]string{"os": i.system, "architecture": i.arch}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": i.version}
	l.file("index.json", map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{manifest}})
	l.file("manifest.json", []map[string]any{{
		"Config": blob(config.Digest), "Layers": []string{blob(layer.Digest)}, "RepoTags": []string{i.name + ":" + i.version, i.name + ":latest"},
	}})
	if l.err != nil {
		return l.err
	}
	out, err := archive(l.files)
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o644)
}

func (i *image) config(layer []byte) any {
	run := map[string]any{"Labels": map[string]string{
		"org.opencontainers.image.title": i.name, "org.opencontainers.image.version": i.version, "org.opencontainers.image.licenses": "Apache-2.0",
	}}
	if i.entrypoint != nil {
		run["Entrypoint"], run["User"] = i.entrypoint, i.user
	}
	return map[string]any{
		"os": i.system, "architecture": i.arch, "config": run,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	}
}

// A layout collects the files of an OCI layout.
type layout struct {
	files []layerFile
	err   error
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// blob is where the content of a digest is.
func blob(digest string) string { return "blobs/sha256/" + digest[len("sha256:"):] }

func (l *layout) add(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
	l.files = append(l.files, layerFile{name: blob(d.Digest), mode: 0o644, content: content})
	return d
}

func (l *layout) json(mediaType string, v any) descriptor { return l.add(mediaType, l.marshal(v)) }

func (l *layout) file(name string, v any) {
	l.files = append(l.files, layerFile{name: name, mode: 0o644, content: l.marshal(v)})
}

func (l *layout) marshal(v any) []byte {
	b, err := json.Marshal(v) // keys of maps are in order
	if err != nil && l.err == nil {
		l.err = err
	}
	return b
}

// archive is a tar of files that are everybody's, and of no time.
func archive(files []layerFile) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.link != "" {
			h.Typeflag, h.Linkname = tar.TypeLink, f.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
