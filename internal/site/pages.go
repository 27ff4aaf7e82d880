// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const indexPage = "docs/README.md"

var (
	link    = regexp.MustCompile(`(!?)\[([^\]\n]*)\]\(([^)\s#]+)(#[^)\s]*)?\)`)
	section = regexp.MustCompile(`^\| \*\*(.+)\*\* \|`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

// pages adds to files the pages that docs/README.md links to, itself, and what they link to in the source.
func pages(source string, files map[string][]byte) error {
	read := func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(source, name))
		return string(b), err
	}
	index, err := read(indexPage)
	if err != nil {
		return err
	}
	s := &site{pages: map[string]string{indexPage: "index.md"}, others: map[string]bool{}}
	navigation := s.navigation(index)
	for name, file := range s.pages {
		text, err := read(name)
		if err != nil {
			return err
		}
		text = s.links(name, text)
		if name == indexPage {
			text += navigation
		}
		files["pages/"+file] = []byte(text)
	}
	for name := range s.others {
		text, err := read(name)
		if err != nil {
			return fmt.Errorf("a page links to it: %w", err)
		}
		files["pages/source/"+name] = []byte(text)
	}
	return nil
}

// A site knows the pages by their names in the source, and what else they link to.
type site struct {
	pages  map[string]string // and their names in the site
	others map[string]bool
}

// navigation is what the index links to, in its order and under its headings, in the notation of Sphinx.
func (s *site) navigation(index string) string {
	var out strings.Builder
	open := false
	for line := range strings.Lines(index) {
		if m := section.FindStringSubmatch(line); m != nil {
			if open {
				out.WriteString("```\n")
			}
			open = true
			fmt.Fprintf(&out, "\n```{toctree}\n:hidden:\n:caption: %s\n\n", strings.ToUpper(m[1][:1])+m[1][1:])
			continue
		}
		for _, m := range link.FindAllStringSubmatch(line, -1) {
			name := path.Join("docs", m[3])
			if _, known := s.pages[name]; !open || known || path.Ext(name) != ".md" || strings.Contains(m[3], "://") {
				continue
			}
			s.pages[name] = strings.ToLower(path.Base(name))
			fmt.Fprintln(&out, strings.TrimSuffix(s.pages[name], ".md"))
		}
	}
	if open {
		out.WriteString("```\n")
	}
	return out.String()
}

// links has the links of a page lead to where their targets are in the site. A page that is named by its file gets its title.
func (s *site) links(name, text string) string {
	var out strings.Builder
	end := 0
	for _, c := range append(code.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		out.WriteString(link.ReplaceAllStringFunc(text[end:c[0]], func(l string) string { return s.link(name, l) }))
		out.WriteString(text[c[0]:c[1]])
		end = c[1]
	}
	return out.String()
}

func (s *site) link(from, whole string) string {
	m := link.FindStringSubmatch(whole)
	if strings.Contains(m[3], "://") {
		return whole
	}
	target := path.Join(path.Dir(from), m[3])
	to, isPage := s.pages[target]
	switch {
	case !isPage:
		s.others[target] = true
		to = "source/" + target
	case m[2] == path.Base(target):
		m[2] = ""
	}
	return fmt.Sprintf("%s[%s](%s%s)", m[1], m[2], to, m[4])
}
