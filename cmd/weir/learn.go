// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

type learnCmd struct {
	Policy string   `required:"" help:"The policy, a file or a folder." type:"path" placeholder:"FILE"`
	Log    []string `help:"Envoy's log, where the filter writes what providers tell of their limits; - is standard input. Without it: the control plane is asked." placeholder:"FILE"`
	Only   string   `help:"Take only limits that are higher, or lower, than the policy's." enum:"any,higher,lower" default:"any"`
	Write  bool     `help:"Write them into the policy. Its comments stay."`
	Yes    bool     `short:"y" help:"Do not ask before writing."`
	JSON   bool     `name:"json" help:"Print JSON."`
	controlFlags
}

// Help is shown by weir learn --help.
func (learnCmd) Help() string {
	return "Providers tell their limits in headers of their answers, or they were found by trying (probe: true). This shows those that differ from the policy's, as a diff, and writes them into the policy when told to. A limit may be low on purpose: look before you write.\n\n" +
		"Examples:\n\n  weir learn --policy policy.yaml --log envoy.log\n  weir learn --policy policy.yaml --write --only lower --yes"
}

// A learned is a limit that a provider has told, and what the policy has.
type learned struct {
	Provider string `json:"provider"`
	Models   string `json:"models"`
	Limit    string `json:"limit"`
	Policy   *int64 `json:"policy"` // null: it has none
	Told     int64  `json:"told"`
}

func (c *learnCmd) Run(ctx context.Context, s streams) error {
	files, err := policyfile.Load(c.Policy)
	if err != nil {
		return usageError{err}
	}
	r, err := readPolicy(c.Policy, s)
	if err != nil {
		return err
	}
	found, err := c.find(ctx, s, r)
	if err != nil {
		return err
	}
	changed, err := c.apply(files, found)
	if err != nil {
		return usageError{err}
	}
	if c.JSON {
		if err := printJSON(s.out, found); err != nil {
			return err
		}
	} else if len(found) == 0 {
		fmt.Fprintln(s.out, "No provider tells of a limit that differs from the policy's.")
	} else {
		fmt.Fprint(s.out, diffOf(files, changed, newPaint(s.out)))
	}
	if !c.Write || len(found) == 0 {
		return nil
	}
	return c.write(s, files, changed)
}

// find gives the limits that differ, in order of their names.
func (c *learnCmd) find(ctx context.Context, s streams, r *policyfile.Result) ([]learned, error) {
	told := map[learned]int64{}
	if len(c.Log) == 0 {
		control, err := c.dial()
		if err != nil {
			return nil, err
		}
		st, err := control.status(ctx)
		if err != nil {
			return nil, err
		}
		for _, q := range st.Fleet.Quotas {
			if q.Learned != nil {
				eachPool(r, func(provider, models string) {
					if q.Quota == "provider "+provider+"/"+models {
						told[learned{Provider: provider, Models: models, Limit: q.Dimension}] = q.Learned.Limit
					}
				})
			}
		}
	}
	for _, name := range c.Log {
		in, done, err := open(name, s)
		if err != nil {
			return nil, err
		}
		err = readTold(in, told)
		done()
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	found := []learned{}
	for l, n := range told {
		if l, differs := compare(r.Spec, l, n); differs && (c.Only == "any" || (c.Only == "higher") == (l.Policy == nil || n > *l.Policy)) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b learned) int {
		return strings.Compare(a.Provider+"\n"+a.Models+"\n"+a.Limit, b.Provider+"\n"+b.Models+"\n"+b.Limit)
	})
	return found, nil
}

// eachPool goes through the entries of all providers.
func eachPool(r *policyfile.Result, each func(provider, models string)) {
	for name, p := range r.Spec.Providers {
		for models := range p.Models {
			each(name, models)
		}
	}
}

// told is what the filter writes into Envoy's log when a provider tells of another limit.
var toldLine = regexp.MustCompile(`weir: provider (.+?)(?:, models (.+))?: it says that its limit is ([0-9]+) ([a-z]+)$`)

// readTold reads a log; what comes later counts.
func readTold(in io.Reader, told map[learned]int64) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		m := toldLine.FindStringSubmatch(strings.TrimSpace(lines.Text()))
		if m == nil {
			continue
		}
		n, err := strconv.ParseInt(m[3], 10, 64)
		if err == nil && n > 0 && n <= policy.MaxUnits {
			if m[2] == "" {
				m[2] = "*"
			}
			told[learned{Provider: m[1], Models: m[2], Limit: m[4]}] = n
		}
	}
	return lines.Err()
}

// compare adds what the policy has; false: it says the same, or can say nothing of it.
func compare(spec *policy.Spec, l learned, told int64) (learned, bool) {
	l.Told = told
	p, ok := spec.Providers[l.Provider]
	if !ok {
		return l, false
	}
	limits := p.Models[l.Models]
	if limits == nil {
		limits = new(policy.LimitSpec)
	}
	n, ok := map[string]*policy.Count{
		"rps": limits.RPS, "rpm": limits.RPM, "rph": limits.RPH, "rpd": limits.RPD, "tpm": limits.TPM, "tph": limits.TPH, "tpd": limits.TPD,
		"itpm": limits.ITPM, "otpm": limits.OTPM,
	}[l.Limit]
	if n != nil {
		l.Policy = new(int64(*n))
	}
	return l, ok && (n == nil || int64(*n) != told)
}

// apply gives the files with all limits in them.
func (c *learnCmd) apply(files []policyfile.File, found []learned) ([]policyfile.File, error) {
	for _, l := range found {
		var err error
		if files, err = policyfile.Set(files, policyfile.Setting{Provider: l.Provider, Models: l.Models, Limit: l.Limit, Value: l.Told}); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// diffOf shows the lines that change.
func diffOf(was, is []policyfile.File, p paint) string {
	var b strings.Builder
	for i := range was {
		old, now := strings.Split(string(was[i].Data), "\n"), strings.Split(string(is[i].Data), "\n")
		if slices.Equal(old, now) {
			continue
		}
		fmt.Fprintf(&b, "%s\n", p.bold(was[i].Name))
		for o, n := 0, 0; o < len(old) || n < len(now); o, n = o+1, n+1 {
			removed, added := differ(old[o:], now[n:])
			for range removed {
				fmt.Fprintf(&b, "%5d %s\n", o+1, p.red("-"+old[o]))
				o++
			}
			for range added {
				fmt.Fprintf(&b, "%5d %s\n", n+1, p.green("+"+now[n]))
				n++
			}
		}
	}
	return b.String()
}

// differ is how many lines have to go, and how many to come, until both are the same again: as few as may be.
func differ(old, now []string) (removed, added int) {
	for both := range len(old) + len(now) + 1 {
		for removed = max(0, both-len(now)); removed <= min(both, len(old)); removed++ {
			added = both - removed
			if removed == len(old) && added == len(now) || removed < len(old) && added < len(now) && old[removed] == now[added] {
				return removed, added
			}
		}
	}
	return len(old), len(now)
}

// write writes the files that have changed, each at once, after it has asked.
func (c *learnCmd) write(s streams, was, is []policyfile.File) error {
	if !c.Yes {
		f, ok := s.in.(*os.File)
		if !ok || !isTerminal(f) {
			return usagef("nothing was written: say --yes where nobody can be asked")
		}
		fmt.Fprint(s.err, "Write this? [y/N] ")
		answer, _ := bufio.NewReader(s.in).ReadString('\n')
		if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
			fmt.Fprintln(s.out, "Nothing was written.")
			return nil
		}
	}
	for i, f := range is {
		if string(was[i].Data) == string(f.Data) {
			continue
		}
		if err := writeOver(f.Name, f.Data); err != nil {
			return usageError{err}
		}
		fmt.Fprintln(s.err, "Wrote", f.Name)
	}
	return nil
}

// writeOver puts another file into a file's place, so that nobody sees half of it.
func writeOver(name string, data []byte) error {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(real), ".weir-*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	_, err = t.Write(data)
	if err == nil {
		err = t.Chmod(info.Mode().Perm())
	}
	if e := t.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(t.Name(), real)
}
