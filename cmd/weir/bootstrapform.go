// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/envoy"
	"github.com/weirproxy/weir/policyfile"
)

// meshFlags are for the forms of meshes.
type meshFlags struct {
	Namespace string `help:"Of weir, in a mesh." default:"weir-system"`
	Image     string `help:"Of weir, in a mesh: it brings the filter into the proxies." default:"weir"`
	Sidecar   bool   `help:"With istio: limit in the callers' own proxies instead of an egress gateway."`
}

// mesh says whether the form is for a mesh.
func (c *bootstrapCmd) mesh() bool { return c.Form == "istio" || c.Form == "envoy-gateway" }

// folder is where the filter is if nothing is said: where Envoy's image has its configuration, and a folder of its own in the
// proxies of a mesh, which have a file system of their own making.
func (c *bootstrapCmd) folder() string {
	switch {
	case c.WasmDir != "":
		return c.WasmDir
	case c.mesh():
		return "/etc/weir"
	}
	return "/etc/envoy"
}

// print gives what the form asks for.
func (c *bootstrapCmd) print(r *policyfile.Result, a envoy.Access) ([]byte, error) {
	if c.Form == "ads" {
		return envoy.Bootstrap(envoy.BootstrapOptions{
			NodeID: c.Node, XDSAddr: c.XDS, Control: c.Control, WasmPath: c.Wasm, Admin: c.Admin, Metrics: c.Metrics, Access: a,
		})
	}
	in := translate.FragmentInput{
		Input: translate.Input{Spec: r.Spec, Policy: r.JSON, BodyCap: r.Policy.MostHeld(), Listen: c.Listen, Wasm: c.Wasm},
		XDS:   c.XDS, Control: c.Control, NodeID: c.Node, Admin: c.Admin, Access: a, Static: c.Static,
	}
	mesh := translate.MeshInput{FragmentInput: in, Namespace: c.Namespace, Image: c.Image, Sidecar: c.Sidecar}
	switch c.Form {
	case "istio":
		return translate.Istio(mesh)
	case "envoy-gateway":
		return translate.EnvoyGateway(mesh)
	}
	pieces, err := translate.Fragments(in)
	if err != nil {
		return nil, err
	}
	if c.Form == "whole" {
		return pieces.Bootstrap()
	}
	return pieces.YAML()
}
