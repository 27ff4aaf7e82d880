// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct {
	Dir string `help:"Write weir.1 and a page for each command into this folder, instead of one page of all to standard output." type:"path"`
}

// Help is shown by weir man --help.
func (manCmd) Help() string {
	return "Examples:\n\n  weir man | man -l -\n  weir man --dir ~/.local/share/man/man1"
}

func (c *manCmd) Run(s streams, k *kong.Kong) error {
	all := commandsOf(k.Model.Node, nil)
	if c.Dir == "" {
		page := manHead("weir", k.Model.Help) + manSection(&all[0])
		for i := range all[1:] {
			page += manSection(&all[i+1])
		}
		_, err := io.WriteString(s.out, page+manEnd)
		return err
	}
	for i := range all {
		name := strings.Join(append([]string{"weir"}, all[i].path...), "-")
		page := manHead(name, all[i].node.Help) + manSection(&all[i]) + manEnd
		if err := os.WriteFile(filepath.Join(c.Dir, name+".1"), []byte(page), 0o644); err != nil {
			return usageError{err}
		}
	}
	return nil
}

const manEnd = ".SH EXIT STATUS\n0: it worked; 1: it failed; 2: it was asked for something wrong (words, a policy, an address that others can reach).\n" +
	".SH ENVIRONMENT\nNO_COLOR: no colours, as where the output is no terminal.\n"

func manHead(name, help string) string {
	help, _, _ = strings.Cut(help, "\n")
	return fmt.Sprintf(".TH %s 1 \"\" weir \"weir's commands\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), roff(name), roff(strings.TrimSuffix(help, ".")))
}

// manSection is all that a command takes.
func manSection(c *command) string {
	var b strings.Builder
	title := strings.ToUpper(strings.TrimSpace("weir " + c.name()))
	fmt.Fprintf(&b, ".SH \"%s\"\n", roff(title))
	fmt.Fprintf(&b, "\\fB%s\\fR", roff(strings.TrimSpace("weir "+c.name())))
	if len(c.subs) > 0 {
		b.WriteString(" \\fICOMMAND\\fR")
	}
	for _, p := range c.node.Positional {
		word := "\\fI" + roff(strings.ToUpper(p.Name)) + "\\fR"
		if !p.Required {
			word = "[" + word + "]"
		}
		b.WriteString(" " + word)
	}
	b.WriteString(" [\\fIflags\\fR]\n.PP\n" + roffText(c.node.Help) + "\n")
	for _, p := range c.node.Positional {
		fmt.Fprintf(&b, ".TP\n\\fI%s\\fR\n%s\n", roff(strings.ToUpper(p.Name)), roffText(p.Help))
	}
	for _, f := range c.node.Flags {
		if f.Hidden {
			continue
		}
		name := f.String() // as --help has it
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(name), roffText(f.Help))
	}
	for _, child := range c.node.Children {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(child.Name), roffText(child.Help))
	}
	if c.node.Detail != "" {
		b.WriteString(".PP\n" + roffText(c.node.Detail) + "\n")
	}
	return b.String()
}

// roff escapes what roff would not print.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "…", "...").Replace(s)
}

// roffText is text of several lines: lines that are indented stay as they are, and none is taken for a request.
func roffText(s string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(strings.TrimSpace(s)) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		if indented != verbatim && line != "" {
			if verbatim = indented; verbatim {
				b.WriteString(".nf\n")
			} else {
				b.WriteString(".fi\n")
			}
		}
		switch line = roff(line); {
		case line == "":
			line = ".PP"
		case line[0] == '.':
			line = `\&` + line
		}
		b.WriteString(line + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
