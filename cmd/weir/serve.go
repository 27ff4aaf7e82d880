// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
)

type serveCmd struct {
	Policy string `required:"" help:"The policy; changes are taken while it runs." type:"path" placeholder:"FILE"`
	statusFlag
	XDS      string `name:"xds" help:"Address for Envoys." default:"127.0.0.1:18000"`
	Listen   string `help:"Address where the Envoys take requests." default:"127.0.0.1:10000"`
	LogLevel string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
}

// Help is shown by weir serve --help.
func (serveCmd) Help() string {
	return "Envoys connect with what weir bootstrap prints.\n\nExample:\n\n  weir serve --policy policy.yaml --xds 127.0.0.1:18000"
}

func (c *serveCmd) Run(ctx context.Context, s streams) error {
	if err := requireLoopback(append(c.Status, c.XDS, c.Listen)...); err != nil {
		return err
	}
	if _, err := readPolicy(c.Policy, s); err != nil {
		return err
	}
	_, hash, err := filterWasm()
	if err != nil {
		return err
	}
	xds, err := listen(c.XDS, "--xds")
	if err != nil {
		return err
	}
	status, err := c.listenAll()
	if err != nil {
		xds.Close()
		return err
	}
	server, err := controlplane.New(controlplane.Config{
		PolicyFile: c.Policy, XDS: xds, Status: status, Listen: c.Listen, WasmHash: hash, Logger: newLogger(s.err, c.LogLevel),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "control plane: xDS on %s, status on http://%s\n", xds.Addr(), status[0].Addr())
	return server.Run(ctx)
}

type bootstrapCmd struct {
	Policy  string `required:"" help:"The policy." type:"path" placeholder:"FILE"`
	Node    string `required:"" help:"Name of this Envoy, unlike any other's." placeholder:"ID"`
	XDS     string `name:"xds" help:"Address of the control plane." default:"127.0.0.1:18000"`
	Control string `help:"Address of the control plane's status page, where the filter reports." default:"127.0.0.1:10080"`
	Wasm    string `help:"The filter as this Envoy sees it: what weir wasm --dir has written; by default in /etc/envoy." placeholder:"FILE"`
	Form    string `help:"ads: Envoy takes everything from weir; fragment: pieces for an Envoy that you configure; whole: the pieces as a whole configuration." default:"ads" enum:"ads,fragment,whole"`
	Admin   string `help:"Address of Envoy's admin interface, where its metrics are; port 0: any, which its log says." default:"127.0.0.1:0"`
	Listen  string `help:"Address where requests are taken, with --form whole." default:"127.0.0.1:10000"`
}

// Help is shown by weir bootstrap --help.
func (bootstrapCmd) Help() string {
	return "Examples:\n\n  weir bootstrap --policy policy.yaml --node egress-1 --wasm $(weir wasm --dir /etc/envoy) > envoy.yaml\n" +
		"  weir bootstrap --policy policy.yaml --node egress-1 --wasm /etc/envoy/weir-1234abcd.wasm --form fragment"
}

func (c *bootstrapCmd) Run(s streams) error {
	r, err := readPolicy(c.Policy, s)
	if err != nil {
		return err
	}
	if c.Wasm == "" {
		_, hash, err := filterWasm()
		if err != nil {
			return err
		}
		c.Wasm = "/etc/envoy/weir-" + hash + ".wasm"
	}
	var out []byte
	if c.Form == "ads" {
		out, err = envoy.Bootstrap(envoy.BootstrapOptions{NodeID: c.Node, XDSAddr: c.XDS, Control: c.Control, WasmPath: c.Wasm, Admin: c.Admin})
	} else {
		var pieces *translate.Pieces
		pieces, err = translate.Fragments(translate.FragmentInput{
			Input: translate.Input{Spec: r.Spec, Policy: r.JSON, ParseCap: r.Policy.Parse, Listen: c.Listen, Wasm: c.Wasm},
			XDS:   c.XDS, Control: c.Control, NodeID: c.Node, Admin: c.Admin,
		})
		if err == nil && c.Form == "whole" {
			out, err = pieces.Bootstrap()
		} else if err == nil {
			out, err = pieces.YAML()
		}
	}
	if err != nil {
		return err
	}
	_, err = s.out.Write(out)
	return err
}
