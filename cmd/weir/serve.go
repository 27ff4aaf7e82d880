// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/envoy"
)

type serveCmd struct {
	Policy string `required:"" help:"The policy; changes are taken while it runs." type:"path" placeholder:"FILE"`
	statusFlag
	XDS      string `name:"xds" help:"Address for Envoys." default:"127.0.0.1:18000"`
	Listen   string `help:"Address where the Envoys take requests." default:"127.0.0.1:10000"`
	LogLevel string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	Store    string `help:"Where the fleet's state and central limits are kept: bolt:FILE, or redis://… or rediss://… for any number of replicas." env:"WEIR_STORE" xor:"store" placeholder:"ADDRESS"`
	StateDir string `help:"Folder of the file where it is kept without --store; by default weir in the user's state folder." env:"WEIR_STATE_DIR,STATE_DIRECTORY" xor:"store" placeholder:"DIR"`
	Fresh    bool   `help:"If the store is empty, no control plane has served these Envoys within the last two minutes: give everything out at once. A new file says so by itself."`
	Name     string `help:"What this replica is called, for people; by default by its machine and its status address." placeholder:"NAME"`
	accessFlags

	ListenAnywhere bool `help:"Let --listen be an address that other machines reach: the policy's trust says whom to believe there."`
}

// accessFlags say who may ask the control plane.
type accessFlags struct {
	TLSCert   string `name:"tls-cert" help:"Certificate of the control plane, for xDS and the status page; it is watched, as are all of these." placeholder:"FILE"`
	TLSKey    string `name:"tls-key" help:"Its key." placeholder:"FILE"`
	ClientCA  string `name:"client-ca" help:"Who signs the certificates of Envoys." placeholder:"FILE"`
	TokenFile string `name:"token-file" help:"Bearer tokens: lines of node ID TOKEN, read NAME TOKEN, admin NAME TOKEN, or a token alone." placeholder:"FILE"`
}

func (f *accessFlags) guard(log *slog.Logger) (*access.Guard, error) {
	g, err := access.New(access.Files{Cert: f.TLSCert, Key: f.TLSKey, ClientCA: f.ClientCA, Tokens: f.TokenFile}, log)
	if err != nil {
		return nil, usageError{err}
	}
	return g, nil
}

// openStore opens the store: a file for this policy, if nothing else is said. Only where that cannot be, there is none.
func (c *serveCmd) openStore(log *slog.Logger) (store.Store, error) {
	address, asked := c.Store, true
	if address == "" {
		var err error
		if address, asked, err = c.stateFile(); err != nil {
			return nil, usageError{err}
		}
	}
	if w := store.OpenWarning(address); w != "" {
		log.Warn(w)
	}
	s, err := store.Open(address)
	switch {
	case err == nil:
		log.Info("the fleet's state is kept", "store", redacted(address))
		return s, nil
	case asked:
		return nil, usageError{err}
	}
	log.Warn("the fleet's state is kept in memory: a restart forgets what has been used of a day's limits and of request trees, there are no central limits, and what Envoys may still hold of an earlier start is waited for; write --state-dir or --store", "error", err)
	return nil, nil
}

// stateFile is where the state of this policy's fleet is kept without a store, and whether that was said.
func (c *serveCmd) stateFile() (address string, asked bool, err error) {
	dir := c.StateDir
	if asked = dir != ""; !asked {
		dir = os.Getenv("XDG_STATE_HOME")
		if home, err := os.UserHomeDir(); dir == "" && err == nil {
			dir = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(dir, "weir")
	}
	path, err := filepath.Abs(c.Policy)
	if err != nil {
		return "", asked, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil && asked {
		return "", asked, err
	}
	sum := sha256.Sum256([]byte(path))
	return "bolt:" + filepath.Join(dir, fmt.Sprintf("fleet-%x.db", sum[:4])), asked, nil
}

// redacted is an address without what its user part says.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return "a store"
}

// name is what this replica is called.
func (c *serveCmd) name(status net.Addr) string {
	if c.Name != "" {
		return c.Name
	}
	host, _ := os.Hostname()
	return host + " " + status.String()
}

// Help is shown by weir serve --help.
func (serveCmd) Help() string {
	return "Envoys connect with what weir bootstrap prints.\n\nExample:\n\n  weir serve --policy policy.yaml --xds 127.0.0.1:18000"
}

func (c *serveCmd) Run(ctx context.Context, s streams) error {
	log := newLogger(s.err, c.LogLevel)
	guard, err := c.guard(log)
	if err != nil {
		return err
	}
	if err := requireSafe(guard, append(c.Status, c.XDS)...); err != nil {
		return err
	}
	if err := requireLoopback(c.Listen); err != nil && !c.ListenAnywhere {
		return usagef("--listen %q can be reached from other machines, and whoever reaches it may ask there (write 127.0.0.1:PORT, or --listen-anywhere as well)", c.Listen)
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
	kept, err := c.openStore(log)
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close()
	}
	server, err := controlplane.New(controlplane.Config{
		PolicyFile: c.Policy, XDS: xds, Status: status, Listen: c.Listen, WasmHash: hash, Logger: log, Access: guard, Store: kept,
		Shares: true, Fresh: c.Fresh,
		Name: c.name(status[0].Addr()),
	})
	if err != nil {
		return err
	}
	scheme := "http"
	if guard.Encrypts() {
		scheme = "https"
	}
	fmt.Fprintf(s.out, "control plane: xDS on %s, status on %s://%s\n", xds.Addr(), scheme, status[0].Addr())
	return server.Run(ctx)
}

type bootstrapCmd struct {
	Policy  string `required:"" help:"The policy." type:"path" placeholder:"FILE"`
	Node    string `required:"" help:"Name of this Envoy, unlike any other's." placeholder:"ID"`
	XDS     string `name:"xds" help:"Address of the control plane." default:"127.0.0.1:18000"`
	Control string `help:"Address of the control plane's status page, where the filter reports." default:"127.0.0.1:10080"`
	Wasm    string `help:"The filter as this Envoy sees it: what weir wasm --dir has written." xor:"wasm" placeholder:"FILE"`
	WasmDir string `help:"Or the folder where it is, under the name that this weir gives it; by default /etc/envoy, in a mesh /etc/weir." xor:"wasm" placeholder:"DIR"`
	Form    string `help:"ads: Envoy takes everything from weir; fragment: pieces for an Envoy that you configure; whole: the pieces as a whole configuration; istio and envoy-gateway: what to apply there." default:"ads" enum:"ads,fragment,whole,istio,envoy-gateway"`
	Admin   string `help:"Address of Envoy's admin interface, where its metrics are; port 0: any, which its log says." default:"127.0.0.1:0"`
	Metrics string `help:"With ads: address where others may read /stats/prometheus and /ready of the admin interface, and nothing else of it; --admin then needs a port." placeholder:"ADDR"`
	Listen  string `help:"Address where requests are taken, with --form whole." default:"127.0.0.1:10000"`
	Out     string `help:"Write to this file instead of standard output." placeholder:"FILE"`
	Static  bool   `help:"Not with ads: there is no control plane; the policy stays as it is now, and each Envoy has its limits for itself."`
	meshFlags
	Strict bool `help:"With a fragment: until the control plane has granted something, admit nothing of limits that the fleet shares. Else this Envoy has each limit for itself till then."`

	TLSDir    string `name:"tls-dir" help:"Speak TLS to the control plane: a folder of this Envoy with ca.crt and, without a token, tls.crt and tls.key, and what --tls-files writes." placeholder:"DIR"`
	TLSFiles  string `name:"tls-files" help:"Write weir-ca.yaml and weir-cert.yaml, which belong into --tls-dir, into this folder." placeholder:"DIR"`
	TokenFile string `name:"token-file" help:"Show the token that this file has for the node." placeholder:"FILE"`
}

// access says how the Envoy shows who it is, and writes the files for that.
func (c *bootstrapCmd) access() (a envoy.Access, err error) {
	a.TLSDir = c.TLSDir
	if c.TokenFile != "" {
		list, err := os.ReadFile(c.TokenFile)
		if err == nil {
			a.Token, err = access.NodeToken(list, c.Node)
		}
		if err != nil {
			return a, usagef("%s: %w", c.TokenFile, err)
		}
		if c.TLSDir == "" && controlplane.RequireLoopback(c.XDS) != nil {
			return a, usagef("a token must not travel to %s in plain text: write --tls-dir as well", c.XDS)
		}
	}
	if c.TLSFiles == "" {
		return a, nil
	}
	if c.TLSDir == "" {
		return a, usagef("--tls-files needs --tls-dir")
	}
	files, err := a.Secrets()
	for name, b := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.TLSFiles, name), b, 0o644))
	}
	return a, err
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
	if c.Static && c.Form == "ads" {
		return usagef("--form ads is all from a control plane: write --form whole with --static")
	}
	if c.Wasm == "" {
		_, hash, err := filterWasm()
		if err != nil {
			return err
		}
		c.Wasm = c.folder() + "/weir-" + hash + ".wasm"
	}
	a, err := c.access()
	if err != nil {
		return err
	}
	if c.Strict {
		if r, err = r.Shared(); err != nil {
			return err
		}
	}
	out, err := c.print(r, a)
	if err != nil {
		return err
	}
	if c.Out != "" {
		return os.WriteFile(c.Out, out, 0o644)
	}
	_, err = s.out.Write(out)
	return err
}
