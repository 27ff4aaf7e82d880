// SPDX-License-Identifier: Apache-2.0

package policyfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// folder writes files and gives their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// However a policy is spread over files, in whichever style each is written, it is the same policy.
func TestFolderIsOnePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const version, provider = "apiVersion: weir/v1\n", "providers: {openai: {upstream: 'https://x.test', models: {'*': {tpm: 5}}}}\n"
		n := rapid.IntRange(1, 8).Draw(t, "limits")
		var texts [3]string
		whole := version + provider + "limits:\n  tenant:\n"
		texts[rapid.IntRange(0, 2).Draw(t, "file")] = provider
		flow := [3][]string{}
		block := [3][]string{}
		for i := range n {
			whole += fmt.Sprintf("    t%d: {rpm: %d}\n", i, i+1)
			to := rapid.IntRange(0, 2).Draw(t, "file")
			if rapid.Bool().Draw(t, "flow") {
				flow[to] = append(flow[to], fmt.Sprintf("t%d: {rpm: %d}", i, i+1))
			} else {
				block[to] = append(block[to], fmt.Sprintf("    t%d:\n      rpm: %d\n", i, i+1))
			}
		}
		var files []File
		for i := range texts {
			switch {
			case len(block[i]) > 0:
				for _, f := range flow[i] {
					block[i] = append(block[i], "    "+f+"\n")
				}
				texts[i] += "limits:\n  tenant:\n" + strings.Join(block[i], "")
			case len(flow[i]) > 0:
				texts[i] += "limits: {tenant: {" + strings.Join(flow[i], ", ") + "}}\n"
			}
			if rapid.Bool().Draw(t, "version") || i == 0 {
				texts[i] = version + texts[i]
			}
			if texts[i] != "" {
				files = append(files, File{fmt.Sprintf("%d.yaml", i), []byte(texts[i])})
			}
		}
		want, err := Parse("policy.yaml", []byte(whole))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseFiles(files)
		if err != nil || string(got.JSON) != string(want.JSON) {
			t.Fatalf("%v\n%q\n%s\nwant\n%s", err, texts, got.JSON, want.JSON)
		}
	})
}

// Each error and notice names its own file and the line there.
func TestFolderErrors(t *testing.T) {
	const base = "apiVersion: weir/v1\nproviders: {openai: {upstream: 'https://x.test'}}\n"
	for _, row := range []struct {
		files map[string]string
		want  []string
	}{
		{map[string]string{"a.yaml": base, "b.yml": "\nlimits:\n  tenant:\n    acme: {rpm: no}\n"}, []string{"b.yml:4:17: limits.tenant.acme.rpm"}},
		{map[string]string{"a.yaml": base + "mode: shadow\n", "b.yaml": "# again\nmode: off\n"}, []string{"b.yaml:2:1: mode: written twice, first in", "a.yaml:3"}},
		{map[string]string{"a.yaml": base + "limits: {tenant: {x: {rpm: 1}}}\n", "b.yaml": "limits: {tenant: {x: {rpm: 1}}}\n"}, []string{"b.yaml:1:23: limits.tenant.x.rpm: written twice"}},
		{map[string]string{"a.yaml": base, "b.yaml": "apiVersion: weir/v2\n"}, []string{"b.yaml:1:1: apiVersion: written twice"}},
		{map[string]string{"a.yaml": base, "b.yaml": "limits: [\n"}, []string{"b.yaml:1:"}},
		{map[string]string{"a.yaml": base, "b.yaml": "- a\n"}, []string{"b.yaml:1:1: no mapping"}},
		{map[string]string{"a.yaml": base, "b.yaml": "# nothing\n"}, []string{"b.yaml:1:1: no policy in the file"}},
		{map[string]string{"a.yaml": base + "x: &x {rpm: 5}\n", "b.yaml": "limits: {tenant: {y: *x}}\n"}, []string{"a.yaml:3:1: x: unknown key", "b.yaml:1:22: limits.tenant.y: no anchor &x"}},
		{map[string]string{"a.yaml": base, "b.yaml": "limits:\n\ttenant: 5\n"}, []string{"b.yaml:2:"}},
		{map[string]string{"b.yaml": base, "c.yaml": "queue: {order: odd}\n", "a.yaml": "limits: {tenant: {}}\n"}, []string{"c.yaml:1:16: queue.order"}},
		{map[string]string{"policy.txt": base}, []string{"without a file that ends in .yaml"}},
	} {
		_, err := Read(folder(t, row.files))
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %v, want %s", row.files, err, want)
			}
		}
		if err != nil && len(strings.Split(err.Error(), "\n")) > len(row.want) {
			t.Errorf("%v: more errors than that: %v", row.files, err)
		}
	}
	r, err := Read(folder(t, map[string]string{"a.yaml": base, "b.yaml": "# trust\ntrust: [all]\n", ".hidden.yaml": "no policy", "c.json": "{}"}))
	if err != nil || len(r.Notices) == 0 || !strings.HasSuffix(r.Notices[0].File, "b.yaml") || r.Notices[0].Line != 2 {
		t.Errorf("%v %+v", err, r)
	}
}

func FuzzParseFiles(f *testing.F) {
	f.Add("apiVersion: weir/v1\nproviders: {openai: {cluster: x}}\n", "limits: {tenant: {a: {rpm: 5}}}")
	f.Add("a: {b: 1}\n", "a:\n  b: 2\n  c: &x 3\nd: *x")
	f.Fuzz(func(t *testing.T, a, b string) {
		_, err := ParseFiles([]File{{"a", []byte(a)}, {"b", []byte(b)}})
		lines := map[string]int{"a": strings.Count(strings.ReplaceAll(a, "\r", "\n"), "\n") + 2, "b": strings.Count(strings.ReplaceAll(b, "\r", "\n"), "\n") + 2}
		for _, e := range Errors(err) {
			if e.Line < 1 || e.Line > lines[e.File] {
				t.Errorf("%q %q: %v", a, b, e)
			}
		}
	})
}
