// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"net"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weirproxy/weir/envoy"
)

// ListenAddress reads host:port, as people write it, for Envoy, which listens on IP addresses only.
func ListenAddress(listen string) (*corev3.Address, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("listen: write host:port, such as 127.0.0.1:10000: %w", err)
	}
	switch host {
	case "":
		host = "0.0.0.0"
	case "localhost":
		host = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return nil, fmt.Errorf("listen: %q is no IP address", host)
	}
	return envoy.Address(net.JoinHostPort(host, port))
}
