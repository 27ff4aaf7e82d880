// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Where weir's version is written beside cmd/weir/version.txt, which a new version changes first.
var versions = regexp.MustCompile(`weir:(\d[^\s"',]*)|(?m)^(?:version|appVersion): "?(\d[^\s"]*)|registry\.example/weir, tag: (\d[^}\s]*)`)

// The version is one: what pages, the chart and the manifest say is what weir version says, and the upgrade notes have it.
func TestVersion(t *testing.T) {
	b, err := os.ReadFile("../../cmd/weir/version.txt")
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(string(b))
	files := []string{"../../envoy/helm/weir/Chart.yaml", "../../envoy/kubernetes/weir.yaml", "../../README.md"}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, docs...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range versions.FindAllStringSubmatch(string(text), -1) {
			found++
			if got := m[1] + m[2] + m[3]; got != version {
				t.Errorf("%s says %q, cmd/weir/version.txt %s", file, m[0], version)
			}
		}
		if filepath.Base(file) == "upgrade.md" && !strings.Contains(string(text), "\n### "+version+"\n") {
			t.Errorf("%s has no notes for %s", file, version)
		}
	}
	if found < 10 {
		t.Errorf("%d places have a version", found)
	}
}
