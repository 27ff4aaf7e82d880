// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// An upstream is where a provider is.
type upstream struct {
	host string // name or IP address
	port string
	base string // of paths; without a slash at the end
	tls  bool
}

// parseUpstream reads a provider's URL, which may be empty if another host:port replaces it. That leaves the path.
func parseUpstream(address, instead string) (*upstream, error) {
	if instead == "" {
		return parseURL(address)
	}
	up, err := parseURL("http://" + instead)
	if err != nil || address == "" {
		return up, err
	}
	old, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	up.base = old.base
	return up, nil
}

func parseURL(address string) (*upstream, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("upstream %q is no http or https address", address)
	}
	up := &upstream{host: u.Hostname(), port: u.Port(), base: strings.TrimRight(u.EscapedPath(), "/"), tls: u.Scheme == "https"}
	up.port = cmp.Or(up.port, up.defaultPort())
	return up, nil
}

func (u *upstream) defaultPort() string {
	if u.tls {
		return "443"
	}
	return "80"
}

// authority is the Host header that the upstream expects: as clients do, without the port that the scheme has anyway.
func (u *upstream) authority() string {
	if u.port != u.defaultPort() {
		return u.address()
	}
	return strings.TrimSuffix(u.address(), ":"+u.port)
}

func (u *upstream) address() string { return net.JoinHostPort(u.host, u.port) }

func (u *upstream) isIP() bool {
	_, err := netip.ParseAddr(u.host)
	return err == nil
}
