// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/weirproxy/weir/controlplane/access"
	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/controlplane/translate"
)

// Config says what a Server does. It closes the listeners when it ends.
type Config struct {
	PolicyFile string
	XDS        net.Listener   // for Envoys
	Status     []net.Listener // for the page, readiness and metrics
	Listen     string         // host:port where Envoys take requests
	Reports    bool           // Envoys have each limit for itself, and say what becomes of calls
	Fleet      fleet.Store    // without a Store: what outlives the process of the fleet's state; nil: nothing
	Fresh      bool           // no Envoy holds anything of a control plane before, if the Store is empty
	Shares     bool           // limits of the fleet's scope are shared out; else each Envoy has them for itself

	WasmHash string        // sha256 of the filter that belongs to this control plane, or its first 8 digits; empty: any
	Upstream string        // host:port that takes the place of every upstream, as of a mock; empty: none
	CAFile   string        // of trusted certificates, on nodes that name none; default translate.DefaultCAFile
	Logger   *slog.Logger  // nil: no log
	Access   *access.Guard // who may what; nil: everybody, but for what needs an admin
	Store    store.Store   // of central limits and of the fleet's state; nil: there is none. It is closed by who opened it
	Name     string        // of this replica, for people; default: this machine's
	Lease    time.Duration // for how long a leader of the fleet may be gone; all of a fleet must have one; default leadLease
	Admin    func() string // host:port of the admin interface of an Envoy of this machine, for the page; empty: not yet; nil: none
	Ready    func() error  // more that has to be true for readiness; may be nil; must not ask for the Status
	Poll     time.Duration // how often the file is read; default watch.Every
	Look     time.Duration // how often all is looked at for the page; default 2 s
}

func (c *Config) check() error {
	if c.PolicyFile == "" {
		return errors.New("no policy file")
	}
	if c.XDS == nil || len(c.Status) == 0 {
		return errors.New("needs listeners for xDS and status")
	}
	for _, l := range append([]net.Listener{c.XDS}, c.Status...) {
		if err := RequireSafe(l.Addr().String(), c.Access); err != nil {
			return err
		}
	}
	if c.Store != nil && c.Fleet != nil {
		return errors.New("a store keeps the fleet's state, too")
	}
	if len(c.Name) > maxName || strings.ContainsAny(c.Name, "#\n") {
		return fmt.Errorf("the name of a control plane has up to %d bytes, and no #", maxName)
	}
	_, err := translate.ListenAddress(c.Listen)
	return err
}

// maxName bounds the name of a replica.
const maxName = 200

// An OpenError says that an address can be reached from other machines, by anybody.
type OpenError struct{ Addr string }

func (e *OpenError) Error() string {
	return fmt.Sprintf("%q can be reached from other machines", e.Addr)
}

// Hint says what to do about it.
func (e *OpenError) Hint() string {
	return "write 127.0.0.1:PORT, or say who may come: --tls-cert and --tls-key, and --client-ca or --token-file (docs/security.md)"
}

// RequireSafe refuses an address of the control plane that other machines can reach, unless they are asked who they are, over TLS.
func RequireSafe(addr string, a *access.Guard) error {
	if a != nil && a.Asks() && a.Encrypts() {
		_, _, err := net.SplitHostPort(addr)
		return err
	}
	return RequireLoopback(addr)
}

// RequireLoopback refuses an address, host:port, that other machines can reach.
func RequireLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is no host:port: %w", addr, err)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return &OpenError{addr}
}
