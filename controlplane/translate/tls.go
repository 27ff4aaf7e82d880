// SPDX-License-Identifier: Apache-2.0

package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/weirproxy/weir/envoy"
)

// transport is TLS that checks the upstream's certificate: signed by someone whom the node trusts, for the name that was asked
// for. Envoy by itself checks neither.
func (t *translator) transport(u *upstream) (*corev3.TransportSocket, error) {
	trusted := &tlsv3.CertificateValidationContext{
		TrustedCa: &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: t.CAFile}},
	}
	c := &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: trusted},
	}}
	if u.isIP() {
		// No server name: it must not be an address.
		trusted.MatchTypedSubjectAltNames = []*tlsv3.SubjectAltNameMatcher{{
			SanType: tlsv3.SubjectAltNameMatcher_IP_ADDRESS,
			Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: u.host}},
		}}
	} else {
		c.Sni, c.AutoSniSanValidation = u.host, true
	}
	a, err := envoy.Any(c)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: a},
	}, nil
}
