// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/policy"
)

type grantCmd struct {
	Tenant string        `arg:"" optional:"" help:"Whose limit; without it: the grants that there are." placeholder:"TENANT"`
	Amount string        `arg:"" optional:"" help:"By how much it is raised: +50k, +2M or a number." placeholder:"+AMOUNT"`
	Limit  string        `help:"Which limit: tpm, rpm, tpd, rpd, in_flight and so on." default:"tpm"`
	For    time.Duration `help:"How long; 31 days at most." default:"1h" placeholder:"TIME"`
	End    bool          `help:"End all grants of the tenant now."`
	JSON   bool          `name:"json" help:"Print JSON."`
	controlFlags
}

// Help is shown by weir grant --help.
func (grantCmd) Help() string {
	return "The limit of the tenant is raised on all Envoys until the time is over; the policy file does not change. It needs an admin's token, or certificate. Grants add up.\n\n" +
		"Examples:\n\n  weir grant acme +50k --for 1h --token-file tokens\n  weir grant acme +1000 --limit rpd --for 8h\n  weir grant\n  weir grant acme --end"
}

func (c *grantCmd) Run(ctx context.Context, s streams) error {
	control, err := c.dial()
	if err != nil {
		return err
	}
	switch {
	case c.Tenant == "":
		st, err := control.status(ctx)
		if err == nil {
			err = c.list(s, st.Grants, "No grants.")
		}
		return err
	case c.End:
		var ended []controlplane.Grant
		if err := control.ask(ctx, http.MethodDelete, controlplane.GrantsPath+"?tenant="+url.QueryEscape(c.Tenant), nil, &ended); err != nil {
			return err
		}
		return c.list(s, ended, "")
	}
	add, err := parseAmount(c.Amount)
	if err != nil {
		return err
	}
	q := controlplane.GrantRequest{Tenant: c.Tenant, Limit: c.Limit, Add: add, For: c.For.Seconds()}
	var g controlplane.Granted
	if err := control.ask(ctx, http.MethodPost, controlplane.GrantsPath, q, &g); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, g)
	}
	fmt.Fprintf(s.out, "%s has %d more %s until %s.\n", g.Tenant, g.Add, g.Limit, g.Until.Local().Format(time.DateTime))
	if !g.Kept {
		fmt.Fprintln(s.out, "The control plane has no store: when it restarts, the grant is gone.")
	}
	return nil
}

// list prints grants.
func (c *grantCmd) list(s streams, grants []controlplane.Grant, none string) error {
	if c.JSON {
		return printJSON(s.out, append([]controlplane.Grant{}, grants...))
	}
	if len(grants) == 0 {
		fmt.Fprintln(s.out, none)
		return nil
	}
	rows := [][]string{{"tenant", "limit", "more", "until", "by"}}
	for _, g := range grants {
		rows = append(rows, []string{g.Tenant, g.Limit, fmt.Sprint(int64(g.Add)), g.Until.Local().Format(time.DateTime), g.By})
	}
	fmt.Fprint(s.out, columns(rows, 2))
	return nil
}

// parseAmount reads +50k, +2M, 300, 50_000.
func parseAmount(word string) (policy.Count, error) {
	digits := strings.ReplaceAll(strings.TrimPrefix(word, "+"), "_", "")
	if strings.HasPrefix(digits, "+") {
		digits = "" // ParseInt would take it
	}
	unit := int64(1)
	for _, u := range []struct {
		suffix string
		n      int64
	}{{"k", 1000}, {"K", 1000}, {"M", 1_000_000}, {"G", 1_000_000_000}} {
		if d, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, unit = d, u.n
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > policy.MaxUnits/unit {
		return 0, usagef("%q is no amount: write +50k, +2M or a number", word)
	}
	return policy.Count(n * unit), nil
}
