// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by weir completion --help.
func (completionCmd) Help() string {
	return "Examples:\n\n  source <(weir completion bash)\n  weir completion zsh > \"${fpath[1]}/_weir\"\n  weir completion fish > ~/.config/fish/completions/weir.fish"
}

func (c *completionCmd) Run(s streams, k *kong.Kong) error {
	write := map[string]func([]command) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := io.WriteString(s.out, write(commandsOf(k.Model.Node, nil)))
	return err
}

// A command is one of the command line's, or the program itself.
type command struct {
	path  []string // without the program
	node  *kong.Node
	subs  []string
	flags []*kong.Flag
}

// commandsOf lists a node and all below it.
func commandsOf(n *kong.Node, path []string) []command {
	c := command{path: path, node: n}
	for m := n; m != nil; m = m.Parent {
		for _, f := range m.Flags {
			if !f.Hidden {
				c.flags = append(c.flags, f)
			}
		}
	}
	all := []command{{}}
	for _, child := range n.Children {
		if !child.Hidden {
			c.subs = append(c.subs, child.Name)
			all = append(all, commandsOf(child, append(slices.Clone(path), child.Name))...)
		}
	}
	all[0] = c
	return all
}

func (c *command) name() string { return strings.Join(c.path, " ") }

// words are what a word may be that does not begin with a dash; none: a file.
func (c *command) words() []string {
	words := slices.Clone(c.subs)
	for _, p := range c.node.Positional {
		words = append(words, enumOf(p)...)
	}
	return words
}

func enumOf(v *kong.Value) (words []string) {
	for _, w := range strings.Split(v.Enum, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// cases are those of a shell's case statement over what was written so far.
func cases(all []command, each func(c *command) (pattern, then string)) string {
	var b strings.Builder
	for i := range all {
		if pattern, then := each(&all[i]); then != "" {
			fmt.Fprintf(&b, "    %s) %s ;;\n", pattern, then)
		}
	}
	return b.String()
}

// The same in bash and zsh: which command it is, the values of a flag, the words, the flags.
func pathCases(all []command) string {
	return cases(all[1:], func(c *command) (string, string) {
		parent, last := strings.Join(c.path[:len(c.path)-1], " "), c.path[len(c.path)-1]
		return fmt.Sprintf("'%s|%s'", parent, last), fmt.Sprintf("at='%s'", c.name())
	})
}

func valueCases(all []command) string {
	var b strings.Builder
	for i := range all {
		c := &all[i]
		for _, f := range c.flags {
			if words := enumOf(f.Value); len(words) > 0 {
				fmt.Fprintf(&b, "    '%s|--%s') found='%s' ;;\n", c.name(), f.Name, strings.Join(words, " "))
			}
		}
	}
	return b.String()
}

func flagCases(all []command) string {
	return cases(all, func(c *command) (string, string) {
		var names []string
		for _, f := range c.flags {
			names = append(names, "--"+f.Name)
		}
		return fmt.Sprintf("'%s'", c.name()), fmt.Sprintf("found='%s'", strings.Join(names, " "))
	})
}

func wordCases(all []command) string {
	return cases(all, func(c *command) (string, string) {
		words := c.words()
		if len(words) == 0 {
			return "", ""
		}
		return fmt.Sprintf("'%s'", c.name()), fmt.Sprintf("found='%s'", strings.Join(words, " "))
	})
}

// match is the body of a function that bash and zsh both understand.
func match(all []command) string {
	return "    case \"$at|$prev\" in\n" + valueCases(all) + "    *) case \"$cur\" in\n    -*) case \"$at\" in\n" + flagCases(all) +
		"    esac ;;\n    *) case \"$at\" in\n" + wordCases(all) + "    esac ;;\n    esac ;;\n    esac\n"
}

func bashCompletion(all []command) string {
	return "# bash completion for weir, written by: weir completion bash\n_weir() {\n    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" at='' found='' i\n" +
		"    for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at|${COMP_WORDS[i]}\" in\n" + pathCases(all) + "    esac\n    done\n" + match(all) +
		"    COMPREPLY=($(compgen -W \"$found\" -- \"$cur\"))\n}\ncomplete -o default -F _weir weir\n"
}

func zshCompletion(all []command) string {
	return "#compdef weir\n# zsh completion for weir, written by: weir completion zsh\n_weir() {\n    local cur=\"${words[CURRENT]}\" prev=\"${words[CURRENT-1]}\" at='' word\n" +
		"    local -a typed=(\"${words[@]}\")\n    local found=''\n" +
		"    for word in \"${(@)typed[2,CURRENT-1]}\"; do\n    case \"$at|$word\" in\n" + pathCases(all) + "    esac\n    done\n" + match(all) +
		"    if [[ -n $found ]]; then compadd -- ${=found}; else _files; fi\n}\nif [[ $funcstack[1] = _weir ]]; then _weir \"$@\"; else compdef _weir weir; fi\n"
}

func fishCompletion(all []command) string {
	var b strings.Builder
	b.WriteString("# fish completion for weir, written by: weir completion fish\n")
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", " ").Replace(s) + "'"
	}
	for i := range all {
		c := &all[i]
		var seen []string
		for _, word := range c.path {
			seen = append(seen, "__fish_seen_subcommand_from "+word)
		}
		inside := strings.Join(seen, "; and ")
		for _, child := range c.node.Children {
			none := strings.Join(append(seen[:len(seen):len(seen)], "not __fish_seen_subcommand_from "+strings.Join(c.subs, " ")), "; and ")
			fmt.Fprintf(&b, "complete -c weir -f -n %s -a %s -d %s\n", quote(none), child.Name, quote(child.Help))
		}
		for _, word := range c.words()[len(c.subs):] {
			fmt.Fprintf(&b, "complete -c weir -n %s -a %s\n", quote(inside), word)
		}
		for _, f := range c.node.Flags {
			if f.Hidden {
				continue
			}
			line := "complete -c weir"
			if inside != "" {
				line += " -n " + quote(inside)
			}
			if line += " -l " + f.Name; f.Short != 0 {
				line += " -s " + string(f.Short)
			}
			if words := enumOf(f.Value); len(words) > 0 {
				line += " -x -a " + quote(strings.Join(words, " "))
			} else if !f.IsBool() {
				line += " -r"
			}
			fmt.Fprintf(&b, "%s -d %s\n", line, quote(f.Help))
		}
	}
	return b.String()
}
