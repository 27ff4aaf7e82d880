// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weirproxy/weir/internal/browser"
)

const source, tools = "../..", "../../.tools"

// TestSite builds the site, in which a broken link is an error, and looks at it as people do.
func TestSite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	if err := build(source, filepath.Join(tools, "site"), dir); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	b := browser.Start(t, tools)
	for _, look := range []struct {
		page, has, scheme string
		width             int64
	}{
		{"index", `document.querySelectorAll(".sidebar-tree li").length > 20`, "light", 1280},
		{"how-it-works", `document.querySelectorAll("pre.mermaid > svg").length == 3`, "dark", 1280},
		{"how-it-works", `document.querySelectorAll("pre.mermaid > svg").length == 3`, "light", 390},
		{"envoy", `document.querySelector(".highlight-sh span")`, "dark", 390},
	} {
		b.Size(look.width, 900, look.scheme)
		b.Do(chromedp.Navigate(server.URL + "/" + look.page + ".html"))
		b.Await(look.has)
		b.Await(`document.documentElement.scrollWidth <= innerWidth`)
		b.Axe()
		b.Picture(look.page + "-" + look.scheme)
	}
	b.Do(chromedp.Navigate(server.URL + "/search.html?q=gateway"))
	b.Await(`document.querySelector("#search-results li a[href*='envoy-gateway.html']")`)
	b.Quiet(server.URL)
}

// The navigation is the index: its pages, in its order.
func TestNavigation(t *testing.T) {
	files := map[string][]byte{}
	if err := pages(source, files); err != nil {
		t.Fatal(err)
	}
	index := string(files["pages/index.md"])
	table, trees, _ := strings.Cut(index, "```{toctree}")
	var linked, listed []string
	for _, m := range link.FindAllStringSubmatch(table, -1) {
		linked = append(linked, m[3])
	}
	for line := range strings.Lines(trees) {
		if name := strings.TrimSpace(line); name != "" && !strings.ContainsAny(name, "`:") {
			listed = append(listed, name+".md")
		}
	}
	if !slices.Equal(linked, listed) || len(listed) < 20 {
		t.Errorf("the index has\n%q\nthe navigation\n%q", linked, listed)
	}
	docs, err := filepath.Glob(filepath.Join(source, "docs/*.md"))
	if err != nil || len(docs) < 20 {
		t.Fatal(docs, err)
	}
	for _, doc := range docs {
		if name := filepath.Base(doc); name != "README.md" && files["pages/"+name] == nil {
			t.Errorf("%s is not in the site", name)
		}
	}
}

func TestLinks(t *testing.T) {
	for from, want := range map[string]string{
		"see [RATIONALE.md](../RATIONALE.md), [why](../RATIONALE.md#why)": "see [](rationale.md), [why](rationale.md#why)",
		"[index](README.md) [here](#x) [there](https://example.org/a.md)": "[index](index.md) [here](#x) [there](https://example.org/a.md)",
		"[manifest](../envoy/k.yaml) ![p](p.svg)":                         "[manifest](source/envoy/k.yaml) ![p](source/docs/p.svg)",
		"`[a](a.md)` and\n```sh\n[a](../a.md)\n```\n":                     "`[a](a.md)` and\n```sh\n[a](../a.md)\n```\n",
	} {
		s := &site{pages: map[string]string{"RATIONALE.md": "rationale.md", "docs/README.md": "index.md"}, others: map[string]bool{}}
		if got := s.links("docs/a.md", from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}

// What is wrong with a page fails the build, and is told.
func TestBroken(t *testing.T) {
	from := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cmd/weir/version.txt", "1.2.3\n")
	write(iconFile, "<svg/>")
	write("docs/README.md", "# Docs\n\n| to | read |\n|---|---|\n| **start** | |\n| x | [other.md](other.md) |\n")
	for text, want := range map[string][]string{
		"[x](gone.md)": {"docs/gone.md"},
		"[x](other.md#gone)\n\n```nosuch\ncode\n```\n\n{nosuchrole}`x`": {"'gone'", "'nosuch'", "nosuchrole"},
	} {
		write("docs/other.md", "# Other\n\n"+text+"\n")
		err := build(from, filepath.Join(tools, "site"), filepath.Join(from, "site"))
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %s", text, err, w)
			}
		}
	}
}
