// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A component is what something is made of, as CycloneDX has it.
type component struct {
	Type       string              `json:"type"`
	Name       string              `json:"name"`
	Version    string              `json:"version,omitempty"`
	PURL       string              `json:"purl,omitempty"`
	Licenses   []map[string]any    `json:"licenses,omitempty"`
	Properties []map[string]string `json:"properties,omitempty"`
}

// data is what is in the filter and comes from no module (the NOTICE files beside it).
var data = []component{
	{Type: "data", Name: "tokenizer vocabularies of OpenAI", Licenses: license("MIT")},
	{Type: "data", Name: "dictionary of brotli", Licenses: license("MIT")},
}

func license(id string) []map[string]any {
	return []map[string]any{{"license": map[string]string{"id": id}}}
}

// bomOf lists the modules that are linked into a binary, and into the filter. It has no time and no number of its own, so that it
// is the same every time.
func bomOf(version, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	all := map[string]component{}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all[m.Path] = module(m.Path, m.Version, m.Sum)
	}
	inFilter, err := filterModules()
	if err != nil {
		return nil, err
	}
	for path, v := range inFilter {
		if _, known := all[path]; !known {
			all[path] = module(path, v, "")
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	components := slices.Clone(data)
	components = append(components, component{Type: "library", Name: "std", Version: goVersion, PURL: "pkg:golang/std@" + goVersion, Licenses: license("BSD-3-Clause")})
	for _, c := range all {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	main := component{Type: "application", Name: "weir", Version: version, PURL: "pkg:golang/" + info.Main.Path + "@v" + version, Licenses: license("Apache-2.0")}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err = e.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": map[string]any{"component": main}, "components": components,
	})
	return out.Bytes(), err
}

func module(path, version, sum string) component {
	c := component{Type: "library", Name: path, Version: version, PURL: fmt.Sprintf("pkg:golang/%s@%s", path, version)}
	if sum != "" {
		c.Properties = []map[string]string{{"name": "go.sum", "value": sum}}
	}
	return c
}

// filterModules are the modules in the filter, with their versions.
func filterModules() (map[string]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "./filter/wasm")
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 2 { // our own has no version
			all[f[0]] = f[1]
		}
	}
	return all, nil
}
