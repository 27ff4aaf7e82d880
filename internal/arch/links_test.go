// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]*)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pages are what people read.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

func prose(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return codeBlock.ReplaceAllString(string(b), "")
}

// anchors are the names by which headings of a page are linked to, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := link.ReplaceAllStringFunc(m[1], func(l string) string { return l[1:strings.Index(l, "]")] })
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		for base, n := slug, 1; all[slug]; n++ {
			slug = base + "-" + string(rune('0'+n))
		}
		all[slug] = true
	}
	return all
}

// Links within the project lead to files and headings that are there. Those that lead elsewhere are only looked at.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(prose(t, page), ""), -1) {
			if problem := broken(t, page, m[1]); problem != "" {
				t.Errorf("%s: %s: %s", page, m[1], problem)
			}
		}
	}
}

func broken(t *testing.T, page, target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "":
		if u.Scheme != "https" || !strings.Contains(u.Host, ".") {
			return "is no https address"
		}
		return ""
	}
	file := page
	if u.Path != "" {
		file = filepath.Join(filepath.Dir(page), u.Path)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "is not there"
	case u.Fragment == "":
		return ""
	case info.IsDir() || filepath.Ext(file) != ".md":
		return "has no headings"
	case !anchors(prose(t, file))[u.Fragment]:
		return "has no such heading"
	}
	return ""
}

// Every page is in the index.
func TestIndex(t *testing.T) {
	index := prose(t, "../../docs/README.md")
	for _, page := range pages(t) {
		name := filepath.Base(page)
		if filepath.Base(filepath.Dir(page)) == "docs" && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# What a `limit` is: [see](x.md)\n## Twice\n## Twice\n")
	for _, want := range []string{"what-a-limit-is-see", "twice", "twice-1"} {
		if !got[want] {
			t.Errorf("no %q in %v", want, got)
		}
	}
}
