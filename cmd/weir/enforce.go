// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weirproxy/weir/controlplane"
)

type enforceCmd struct {
	To   string `arg:"" optional:"" enum:"on,shadow,off," default:"" help:"on: the policy's own modes hold; shadow: all limits only watch; off: nothing is counted or refused. Without it: how it is."`
	JSON bool   `name:"json" help:"Print JSON."`
	controlFlags
}

// Help is shown by weir enforce --help.
func (enforceCmd) Help() string {
	return "One switch for everything, on all Envoys within a second. The policy file does not change. It needs an admin's token, or certificate.\n\n" +
		"Examples:\n\n  weir enforce\n  weir enforce shadow --token-file tokens"
}

func (c *enforceCmd) Run(ctx context.Context, s streams) error {
	control, err := c.dial()
	if err != nil {
		return err
	}
	var e controlplane.Enforcement
	if c.To == "" {
		st, err := control.status(ctx)
		if err != nil {
			return err
		}
		e = controlplane.Enforcement{Enforce: st.Enforce, Kept: st.Store != "", Since: st.Since, By: st.By}
		if st.Policy != nil {
			e.Mode = st.Policy.Mode
		}
	} else if err := control.ask(ctx, http.MethodPost, controlplane.EnforcePath, controlplane.Enforcement{Enforce: c.To}, &e); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s.out, e)
	}
	p := newPaint(s.out)
	switch e.Enforce {
	case controlplane.EnforceOn:
		fmt.Fprintf(s.out, "enforce %s: the policy's own mode holds, which is %s.\n", p.green("on"), e.Mode)
	case controlplane.EnforceShadow:
		fmt.Fprintf(s.out, "enforce %s: nothing is refused; what would have been is counted.\n", p.red("shadow"))
	default:
		fmt.Fprintf(s.out, "enforce %s: nothing is counted and nothing is refused.\n", p.red("off"))
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(s.out, "Since %s, by %s.\n", e.Since.Local().Format(time.DateTime), e.By)
	}
	if !e.Kept && e.Enforce != controlplane.EnforceOn {
		fmt.Fprintln(s.out, "The control plane has no store: when it restarts, it is on again.")
	}
	return nil
}
