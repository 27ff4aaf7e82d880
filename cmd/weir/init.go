// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/weirproxy/weir/policyfile"
)

type initCmd struct {
	File      string   `arg:"" optional:"" help:"Where to write; - is standard output." default:"policy.yaml" placeholder:"FILE"`
	Provider  []string `help:"A provider, as NAME, or NAME=URL for an address of its own; may be repeated. Without one weir asks, on a terminal." placeholder:"NAME"`
	TPM       string   `name:"tpm" help:"Tokens a minute that the account has at each of them." placeholder:"N"`
	RPM       string   `name:"rpm" help:"Requests a minute that the account has at each of them." placeholder:"N"`
	TenantTPM string   `name:"tenant-tpm" help:"Tokens a minute for each tenant; by default a fifth of the account's." placeholder:"N"`
	Trust     []string `help:"Networks or certificates whose headers are believed." default:"127.0.0.0/8" placeholder:"CIDR|URI"`
	Force     bool     `help:"Write over a file that is there."`
}

// Help is shown by weir init --help.
func (initCmd) Help() string {
	return "It knows " + strings.Join(startNames(), ", ") + "; of another NAME=URL it counts requests, unless it is OpenAI's API that it speaks (NAME=openai+URL).\n\n" +
		"Examples:\n\n  weir init\n  weir init --provider openai --provider anthropic --tpm 200k\n  weir init --provider vllm=openai+http://vllm.internal:8000 - | weir validate -"
}

// A start is what a policy says of a provider to begin with.
type start struct {
	name, upstream, dialect string // without a dialect it has the provider's name
	window                  string
	more                    string // limits that it has beside
	comment                 string
}

// starts are providers by name. Limits are those of an account: what stands here is a place to write them.
var starts = []start{
	{name: "openai", upstream: "https://api.openai.com", window: "continuous", comment: "your limits: https://platform.openai.com/settings/organization/limits"},
	{name: "anthropic", upstream: "https://api.anthropic.com", window: "continuous", comment: "your limits: the console, under Limits; input and output have their own there: itpm, otpm"},
	{name: "gemini", upstream: "https://generativelanguage.googleapis.com", more: ", rpd: 1_000, reset: America/Los_Angeles", comment: "your limits: AI Studio, under rate limits; days begin at midnight in California"},
	{name: "bedrock", upstream: "https://bedrock-runtime.us-east-1.amazonaws.com", comment: "your region; your limits: Service Quotas in the AWS console"},
	{name: "cohere", upstream: "https://api.cohere.com", comment: "your limits: https://docs.cohere.com, rate limits"},
	{name: "mistral", upstream: "https://api.mistral.ai", comment: "your limits: the console, under limits"},
	{name: "ollama", upstream: "http://127.0.0.1:11434", comment: "your own machine: what it can bear"},
	{name: "groq", upstream: "https://api.groq.com/openai", dialect: "openai", comment: "your limits: the console, under limits"},
	{name: "deepseek", upstream: "https://api.deepseek.com", dialect: "openai", comment: "what you allow yourself"},
	{name: "openrouter", upstream: "https://openrouter.ai/api", dialect: "openai", comment: "what you allow yourself"},
	{name: "together", upstream: "https://api.together.xyz", dialect: "openai", comment: "your limits: the console, under limits"},
}

func startNames() (names []string) {
	for _, s := range starts {
		names = append(names, s.name)
	}
	return names
}

func (c *initCmd) Run(s streams) error {
	if len(c.Provider) == 0 {
		if f, ok := s.in.(*os.File); ok && isTerminal(f) {
			if err := c.ask(s); err != nil {
				return err
			}
		} else {
			c.Provider = []string{"openai"}
		}
	}
	text, err := c.text()
	if err != nil {
		return err
	}
	if c.File == "-" {
		_, err := io.WriteString(s.out, text)
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if c.Force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(c.File, flags, 0o600) // there is a secret in it
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there already: write another name, or --force", c.File)
	}
	if err != nil {
		return usageError{err}
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(s.out, "Wrote %s. Try it with: weir up --policy %s --mock\n", c.File, c.File)
	}
	return err
}

// ask asks for what was not said. An empty answer takes what is proposed.
func (c *initCmd) ask(s streams) error {
	in := bufio.NewReader(s.in)
	question := func(text, proposed string) (string, error) {
		fmt.Fprintf(s.err, "%s [%s]: ", text, proposed)
		line, err := in.ReadString('\n')
		if err != nil && line == "" {
			return "", errors.New("nothing was written: no answer")
		}
		if line = strings.TrimSpace(line); line == "" {
			line = proposed
		}
		return line, nil
	}
	names, err := question("Providers, of "+strings.Join(startNames(), ", ")+", or NAME=URL", "openai")
	if err != nil {
		return err
	}
	c.Provider = strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	for _, q := range []struct {
		text, proposed string
		to             *string
	}{{"Requests a minute that your account has there", "500", &c.RPM}, {"Tokens a minute", "30_000", &c.TPM}} {
		if *q.to == "" {
			if *q.to, err = question(q.text, q.proposed); err != nil {
				return err
			}
		}
	}
	if tpm, err := amountOr(c.TPM, 30_000); err == nil && c.TenantTPM == "" {
		c.TenantTPM, err = question("Tokens a minute for each tenant", policyfile.Grouped(max(tpm/5, 1)))
		return err
	}
	return nil
}

// text is the policy. It is read as any other before it is written.
func (c *initCmd) text() (string, error) {
	rpm, err := amountOr(c.RPM, 500)
	if err != nil {
		return "", err
	}
	tpm, err := amountOr(c.TPM, 30_000)
	if err != nil {
		return "", err
	}
	tenant, err := amountOr(c.TenantTPM, max(tpm/5, 1))
	if err != nil {
		return "", err
	}
	var secret [24]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# A policy of weir. Everything that may be in it: docs/policy.md; check it with: weir validate FILE\n# yaml-language-server: $schema=weir.schema.json\napiVersion: weir/v1\n\n" +
		"# shadow counts what would be refused, and lets it pass: a way to begin beside real traffic.\nmode: enforce\n\n" +
		"# Providers, each with the limits of your account there. Callers ask at /NAME/… of weir's address, with their own keys.\nproviders:\n")
	for _, word := range c.Provider {
		s, err := startOf(word)
		if err != nil {
			return "", err
		}
		b.WriteString(s.text(rpm, tpm))
	}
	fmt.Fprintf(&b, "\n# Who may say who they are, in headers such as x-tenant and x-user. All others are told apart by their keys alone.\ntrust: [%s]\n", strings.Join(c.Trust, ", "))
	fmt.Fprintf(&b, "\n# Keys are hashed with this before they name anybody. Keep it to yourself, and the same on all machines.\nsecret: %s\n", hex.EncodeToString(secret[:]))
	fmt.Fprintf(&b, "\n# What each tenant and each user may use of it, whatever the provider. A quarter of a limit may come at once.\nlimits:\n  tenant:\n    default: {tpm: %s}\n    # acme: {tpm: %s}                    # one of them by name\n  user:\n    default: {in_flight: 8}              # calls that are open at once\n", policyfile.Grouped(tenant), policyfile.Grouped(min(tenant*2, 1_000_000_000_000)))
	b.WriteString("\n# classes:                               # who goes first when it gets tight; callers say x-priority: batch\n#   interactive: {share: 70%, on_limit: deny}\n#   batch: {share: 30%, on_limit: queue, wait: 30s}\n" +
		"# prices: {\"gpt-4o*\": {input: 2.5, output: 10}}   # US dollars for a million tokens, for limits such as usd_per_day: 50\n")
	if r, err := policyfile.Parse("policy.yaml", []byte(b.String())); err != nil {
		return "", usagef("this makes no policy:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
	} else if len(r.Notices) > 0 {
		return "", usagef("this makes a policy with something wrong in it: %s", r.Notices[0].Text)
	}
	return b.String(), nil
}

// startOf reads NAME, NAME=URL or NAME=DIALECT+URL.
func startOf(word string) (s start, err error) {
	name, url, own := strings.Cut(word, "=")
	i := slices.IndexFunc(starts, func(s start) bool { return s.name == name })
	switch {
	case i >= 0:
		s = starts[i]
	case !own:
		hint := ""
		if meant, ok := nearest(name, startNames()); ok {
			hint = ": did you mean " + meant + "?"
		}
		return s, usagef("no provider %q is known%s (write one of %s, or NAME=URL)", name, hint, strings.Join(startNames(), ", "))
	default:
		s = start{name: name, dialect: "generic", comment: "what it can bear"}
	}
	if dialect, rest, ok := strings.Cut(url, "+"); ok && !strings.Contains(dialect, ":") {
		s.dialect, url = dialect, rest
	}
	if own {
		s.upstream = url
	}
	return s, nil
}

func (s *start) text(rpm, tpm int64) string {
	text := fmt.Sprintf("  %s:                                # %s\n    upstream: %s\n", s.name, s.comment, s.upstream)
	if s.dialect != "" {
		text += "    dialect: " + s.dialect + "\n"
	}
	limits := "rpm: " + policyfile.Grouped(rpm)
	if s.dialect != "generic" {
		limits += ", tpm: " + policyfile.Grouped(tpm)
	}
	if limits += s.more; s.window != "" {
		limits += ", window: " + s.window
	}
	return text + "    models:\n      \"*\": {" + limits + "}      # all models together; give those with limits of their own an entry\n"
}

// amountOr reads an amount, if there is one.
func amountOr(word string, otherwise int64) (int64, error) {
	if word == "" {
		return otherwise, nil
	}
	n, err := parseAmount(word)
	return int64(n), err
}
