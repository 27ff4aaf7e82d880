// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"bytes"
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/envoy"
)

func (p *Pieces) aboutFilters() string {
	about := "Into http_filters of the connection manager, before every filter that sends requests on. "
	if len(p.Control) > 0 {
		about += "default_config is the\npolicy as it is now: it limits without a control plane; without it Envoy would wait, and then answer 500.\n" +
			"weir.shares brings this Envoy's part of the fleet's limits; no request passes it.\n"
	} else {
		about += "It has the\npolicy as it is now, and each Envoy has the limits for itself.\n"
	}
	return about + "The file has to be there when Envoy starts, or Envoy exits."
}

func (p *Pieces) aboutClusters() string {
	if len(p.Control) > 0 {
		return "the providers, and the control plane"
	}
	return "the providers"
}

// YAML writes the pieces with a word on where each goes. Together they are one document.
func (p *Pieces) YAML() ([]byte, error) {
	// Each piece is written as the message that it goes into, so that it stands under the field where it belongs.
	pieces := []struct {
		about string
		in    proto.Message
	}{
		{p.aboutFilters(), &hcmv3.HttpConnectionManager{HttpFilters: p.filters()}},
		{"Into the connection manager. What is not here has good defaults.", p.settings()},
		{"Into the route configuration. request_body_buffer_limit has to stay above body.hold.",
			&routev3.RouteConfiguration{VirtualHosts: []*routev3.VirtualHost{p.Host}}},
		{"Into static_resources: " + p.aboutClusters() + ".",
			&bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: p.allClusters()}}},
		{"Into the bootstrap: tells the control plane which filter this Envoy has.", &bootstrapv3.Bootstrap{Node: p.Node}},
		{"Into the bootstrap: makes labels of what the filter puts into the names of its metrics.",
			&bootstrapv3.Bootstrap{StatsConfig: envoy.StatsConfig()}},
	}
	var out bytes.Buffer
	for i, piece := range pieces {
		b, err := envoy.YAML(piece.in, envoy.Comments{})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		for line := range bytes.Lines([]byte(piece.about + "\n")) {
			fmt.Fprintf(&out, "# %s", line)
		}
		out.Write(b)
	}
	return out.Bytes(), nil
}
