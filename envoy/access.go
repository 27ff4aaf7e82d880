// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"fmt"
	"net"
	"path"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Access is how an Envoy shows a control plane who it is, and knows the control plane. The zero value does neither.
type Access struct {
	// TLSDir is the folder with ca.crt, and without a token tls.crt and tls.key, as Envoy sees it; empty: no TLS. The files of
	// [Access.Secrets] are there, too: Envoy watches the folder, so that it takes new certificates as they come.
	TLSDir string
	Token  string
}

// Names of the files by which Envoy finds certificates.
const (
	caSecret   = "weir-ca.yaml"
	certSecret = "weir-cert.yaml"
)

// Secure makes a cluster of the control plane at host speak TLS.
func (a Access) Secure(c *clusterv3.Cluster, host string) error {
	if a.TLSDir == "" {
		return nil
	}
	common := &tlsv3.CommonTlsContext{ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext:         &tlsv3.CertificateValidationContext{MatchTypedSubjectAltNames: sanOf(host)},
			ValidationContextSdsSecretConfig: a.secret(caSecret),
		},
	}}
	if a.Token == "" {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{a.secret(certSecret)}
	}
	t := &tlsv3.UpstreamTlsContext{CommonTlsContext: common}
	if net.ParseIP(host) == nil {
		t.Sni = host
	}
	any, err := Any(t)
	if err != nil {
		return err
	}
	c.TransportSocket = &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: any},
	}
	return nil
}

// sanOf is what the control plane's certificate must be for: Envoy by itself takes any that the CA has signed.
func sanOf(host string) []*tlsv3.SubjectAltNameMatcher {
	kind := tlsv3.SubjectAltNameMatcher_DNS
	if net.ParseIP(host) != nil {
		kind = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	return []*tlsv3.SubjectAltNameMatcher{{
		SanType: kind, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: host}},
	}}
}

// secret takes a secret from a file, and again whenever something is moved in its folder.
func (a Access) secret(file string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: secretName(file), SdsConfig: &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
			Path: path.Join(a.TLSDir, file), WatchedDirectory: &corev3.WatchedDirectory{Path: a.TLSDir},
		}},
	}}
}

func secretName(file string) string { return file[:len(file)-len(path.Ext(file))] }

// Secrets gives the files that belong beside the certificates, by name.
func (a Access) Secrets() (map[string][]byte, error) {
	file := func(name string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path.Join(a.TLSDir, name)}}
	}
	watched := &corev3.WatchedDirectory{Path: a.TLSDir}
	secrets := map[string]*tlsv3.Secret{caSecret: {Type: &tlsv3.Secret_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: file("ca.crt"), WatchedDirectory: watched},
	}}}
	if a.Token == "" {
		secrets[certSecret] = &tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: file("tls.crt"), PrivateKey: file("tls.key"), WatchedDirectory: watched,
		}}}
	}
	files := map[string][]byte{}
	for name, s := range secrets {
		s.Name = secretName(name)
		any, err := Any(s)
		if err != nil {
			return nil, err
		}
		if files[name], err = YAML(&discoveryv3.DiscoveryResponse{Resources: []*anypb.Any{any}}, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// metadata is what a stream of the incremental protocol carries.
func (a Access) metadata() []*corev3.HeaderValue {
	if a.Token == "" {
		return nil
	}
	return []*corev3.HeaderValue{{Key: "authorization", Value: "Bearer " + a.Token}}
}
