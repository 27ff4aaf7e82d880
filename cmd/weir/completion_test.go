// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completions are what a shell proposes for a line, by the script that weir prints for it.
var completions = map[string]string{
	"bash": `COMP_WORDS=(@WORDS@); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); source "$SCRIPT"; _weir; printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh":  `compdef() { :; }; _files() { :; }; compadd() { shift; print -l -- $@; }; source "$SCRIPT"; words=(@WORDS@); CURRENT=${#words}; _weir`,
	"fish": `source "$SCRIPT"; complete -C "@LINE@"`,
}

// Each shell proposes commands, flags of the command, and the words that a flag or an argument may be. Shells that are not there
// are left out; bash is.
func TestCompletion(t *testing.T) {
	tried := 0
	for shell, text := range completions {
		code, script, errs := weir(t, "", "completion", shell)
		if code != 0 {
			t.Fatal(errs)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		tried++
		file := write(t, "weir."+shell, script)
		for _, row := range []struct {
			line       []string
			want, none string
		}{
			{[]string{"weir", "enf"}, "enforce", "up"},
			{[]string{"weir", "enforce", ""}, "shadow", "up"},
			{[]string{"weir", "enforce", "shadow", "--tok"}, "--token-file", "--xds"},
			{[]string{"weir", "serve", "--log-level", ""}, "debug", "--xds"},
			{[]string{"weir", "bench", "f"}, "fleet", "up"},
			{[]string{"weir", "bench", "fleet", "--no"}, "--nodes", "--rounds"},
		} {
			var words []string
			for _, w := range row.line {
				words = append(words, "'"+w+"'")
			}
			cmd := exec.Command(program, "-c", strings.NewReplacer("@WORDS@", strings.Join(words, " "), "@LINE@", strings.Join(row.line, " ")).Replace(text))
			cmd.Env = append(os.Environ(), "SCRIPT="+file, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			var got []string
			for line := range strings.Lines(string(out)) { // bash leaves it to compgen which of them begin so, fish tells what they are
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				if strings.HasPrefix(word, row.line[len(row.line)-1]) {
					got = append(got, word)
				}
			}
			if err != nil || !slices.Contains(got, row.want) || slices.Contains(got, row.none) {
				t.Errorf("%s: %v: %v\n%s", shell, row.line, err, out)
			}
		}
	}
	if tried == 0 {
		t.Error("no shell")
	}
	if code, _, errs := weir(t, "", "completion", "csh"); code != exitUsage || !strings.Contains(errs, "fish") {
		t.Error(code, errs)
	}
}

// The manual has every command with every flag, and no line that roff takes for a request by mistake.
func TestMan(t *testing.T) {
	code, page, errs := weir(t, "", "man")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{`.SH "WEIR BENCH FLEET"`, `\fB\-\-token\-file=FILE\fR`, `.SH "WEIR EXPLAIN"`, `[\fITO\fR]`, ".SH EXIT STATUS"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	for n, line := range strings.Split(page, "\n") {
		request, _, _ := strings.Cut(line, " ")
		if (strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")) && !slices.Contains([]string{".TH", ".SH", ".PP", ".TP", ".nf", ".fi"}, request) {
			t.Errorf("line %d: %s", n+1, line)
		}
	}
	dir := t.TempDir()
	if code, _, errs := weir(t, "", "man", "--dir", dir); code != 0 {
		t.Fatal(errs)
	}
	pages, err := filepath.Glob(dir + "/weir*.1")
	if err != nil || !slices.Contains(pages, dir+"/weir.1") || !slices.Contains(pages, dir+"/weir-bench-fleet.1") || len(pages) != strings.Count(page, ".SH \"WEIR") {
		t.Error(pages, err)
	}
	if mandoc, err := exec.LookPath("mandoc"); err == nil {
		for _, page := range pages {
			if out, err := exec.Command(mandoc, "-T", "lint", "-W", "error", page).CombinedOutput(); err != nil {
				t.Errorf("%s: %s", page, out)
			}
		}
	}
	if code, _, _ := weir(t, "", "man", "--dir", "/nowhere/at/all"); code != exitUsage {
		t.Error(code)
	}
}
