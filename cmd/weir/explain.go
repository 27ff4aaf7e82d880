// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/weirproxy/weir/dialect"
	"github.com/weirproxy/weir/policy"
	"github.com/weirproxy/weir/policyfile"
)

type explainCmd struct {
	Policy string            `required:"" help:"The policy." type:"path" placeholder:"FILE"`
	Header []string          `short:"H" sep:"none" help:"A header of the request, as 'x-tenant: acme'; may be repeated." placeholder:"'K: V'"`
	Path   string            `help:"Path that the caller asks for, with the provider's prefix; by default the chat of the only LLM provider." placeholder:"P"`
	Method string            `help:"Method of the request." default:"POST"`
	Source string            `help:"Address that the caller's connection comes from." default:"127.0.0.1" placeholder:"IP"`
	Peer   string            `help:"URI of the caller's certificate, such as spiffe://corp/ns/a/sa/b." placeholder:"URI"`
	Claim  map[string]string `help:"A claim of the caller's token, as sub=alice." placeholder:"NAME=VALUE"`
	JSON   bool              `name:"json" help:"Print JSON."`
	File   string            `arg:"" optional:"" help:"The request's body; - is standard input; without it there is none." placeholder:"BODYFILE"`
}

// Help is shown by weir explain --help.
func (explainCmd) Help() string {
	return "It runs the filter itself, without Envoy, on buckets of which nothing is used; then it fills them with the same request until a limit refuses, and sends it once more. What running filters have learned from answers (calibrated counts, long outputs, cut rates) it does not know.\n\n" +
		"Exit code 1: the request is refused although nothing is used.\n\n" +
		"Examples:\n\n  weir explain --policy policy.yaml -H 'x-tenant: acme' body.json\n  weir explain --policy policy.yaml --path /openai/v1/embeddings --json body.json"
}

func (c *explainCmd) Run(s streams) error {
	r, err := readPolicy(c.Policy, s)
	if err != nil {
		return err
	}
	if r, err = alone(r); err != nil {
		return err
	}
	q, err := c.request(r.Policy, s)
	if err != nil {
		return err
	}
	e, err := explain(r, q)
	if err != nil {
		return err
	}
	if c.JSON {
		out := json.NewEncoder(s.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(e)
	} else {
		_, err = io.WriteString(s.out, e.text(newPaint(s.out)))
	}
	if err == nil && e.First.Does == "deny" {
		return errRefused
	}
	return err
}

// errRefused is the end of a command that has said already what is the matter.
var errRefused = silentError("the request is refused")

// request is what the filter gets to see.
func (c *explainCmd) request(p *policy.Policy, s streams) (q *offlineRequest, err error) {
	q = &offlineRequest{properties: map[string]string{"connection.uri_san_peer_certificate": c.Peer}}
	addr, err := netip.ParseAddr(c.Source)
	if err != nil {
		return nil, usagef("--source %q is no IP address", c.Source)
	}
	q.properties["source.address"] = netip.AddrPortFrom(addr, 40000).String()
	for name, value := range c.Claim {
		q.properties["metadata.filter_metadata.envoy.filters.http.jwt_authn.jwt_payload."+name] = value
	}
	if c.File != "" {
		in, done, err := open(c.File, s)
		if err != nil {
			return nil, err
		}
		defer done()
		if q.body, err = io.ReadAll(in); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", c.File, err)
		}
	}
	path, err := c.path(p)
	if err != nil {
		return nil, err
	}
	q.headers = [][2]string{{":method", c.Method}, {":path", path}, {":authority", "weir"}, {":scheme", "http"}}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" {
			return nil, usagef("--header %q: write NAME: VALUE", h)
		}
		q.headers = append(q.headers, [2]string{strings.ToLower(textproto.TrimString(name)), textproto.TrimString(value)})
	}
	if c.File != "" {
		q.headers = append(q.headers, [2]string{"content-length", fmt.Sprint(len(q.body))})
	}
	return q, nil
}

// path is the one that was said, or else that of most requests of the only LLM provider.
func (c *explainCmd) path(p *policy.Policy) (string, error) {
	if c.Path != "" {
		return c.Path, nil
	}
	var only *policy.Provider
	for _, pr := range p.Providers {
		switch {
		case pr.Dialect == dialect.Generic.String():
		case only != nil:
			return "", usagef("say with --path where the request goes: the policy has several providers (%s)", strings.Join(prefixes(p), ", "))
		default:
			only = pr
		}
	}
	if only == nil {
		return "", usagef("say with --path where the request goes (%s)", strings.Join(prefixes(p), ", "))
	}
	d, _ := dialect.Parse(only.Dialect)
	if d.CallOf("POST", d.Path()).Model != "" {
		return "", usagef("say with --path where the request goes, such as %s%s: the path names the model", only.Prefix, d.Path())
	}
	return only.Prefix + d.Path(), nil
}

func prefixes(p *policy.Policy) (all []string) {
	for _, pr := range p.Providers {
		all = append(all, pr.Prefix+"/…")
	}
	return all
}

// explain has the filter decide on a request.
func explain(r *policyfile.Result, q *offlineRequest) (*explanation, error) {
	o, err := newOffline(r)
	if err != nil {
		return nil, err
	}
	e := &explanation{Mode: r.Policy.Mode.String(), Path: q.header(":path")}
	e.First = o.send(q)
	if o.seen == nil { // it was decided by its headers, or passes uncounted
		return e, nil
	}
	seen := *o.seen
	e.request(r.Policy, &seen)
	e.cost(r.Policy, &seen)
	e.limits(r.Policy, &seen)
	if e.First.Does != "admit" || seen.Path.Len == 0 {
		return e, nil
	}
	var by *policy.Refusal
	if e.AtOnce, by = o.fill(&seen); by != nil {
		e.By = &refusalSaid{by.Reason.String(), by.Tier.String(), by.Dimension.String(), by.Limit, by.Wait.Seconds(), by.Class}
		then := o.send(q)
		if then.Does == "queue" {
			r := policy.QueueTimeout
			then.Status, then.Reason, then.Tier, then.Dimension, then.Limit = r.Status(), r.String(), e.By.Tier, e.By.Dimension, e.By.Limit
		}
		e.Then = &then
	}
	return e, nil
}
