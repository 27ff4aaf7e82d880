// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/envoy"
)

// identityEnvoy is an Envoy as a user would have it: client certificates, tokens, and weir after them.
const identityEnvoy = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: weir
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          require_client_certificate: true
          common_tls_context:
            tls_certificates: [{certificate_chain: {filename: DIR/server.pem}, private_key: {filename: DIR/server.key}}]
            validation_context: {trusted_ca: {filename: DIR/ca.pem}}
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: weir
          route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /openai/}, route: {cluster: mock, prefix_rewrite: /}}]}]}
          http_filters:
          - name: jwt
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
              providers: {idp: {issuer: idp, local_jwks: {inline_string: 'JWKS'}, payload_in_metadata: jwt_payload}}
              rules: [{match: {prefix: /}, requires: {requires_any: {requirements: [{provider_name: idp}, {allow_missing: {}}]}}}]
          - name: weir
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm
              config:
                name: weir
                root_id: weir
                allow_on_headers_stop_iteration: true
                configuration: {"@type": type.googleapis.com/google.protobuf.StringValue, value: 'POLICY'}
                vm_config: {vm_id: weir, runtime: envoy.wasm.runtime.v8, code: {local: {filename: WASM}}}
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: mock
    load_assignment: {cluster_name: mock, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: HOST, port_value: PORT}}}}]}]}
`

const identityPolicy = `{"apiVersion":"weir/v1","trust":["spiffe://mesh/trusted/*"],"providers":{"openai":{"cluster":"mock"}},
	"who":{"tenant":["header x-tenant","claim sub","peer"]},
	"limits":{"tenant":{"alice":{"tpm":"100"},"spiffe://mesh/agents/a":{"tpm":"200"},"boss":{"tpm":"300"},"default":{"tpm":"400"}}}}`

// An authority makes certificates.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB, dir string) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "ca.pem"), "CERTIFICATE", der)
	return &authority{t, key, cert}
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate for a name, and for a URI if that is not empty.
func (a *authority) issue(uri string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if uri != "" {
		u, err := url.Parse(uri)
		if err != nil {
			a.t.Fatal(err)
		}
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// token signs a JWT, and jwks is the key to check it with.
func token(t testing.TB, key *ecdsa.PrivateKey, subject string) string {
	enc := base64.RawURLEncoding
	signed := enc.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." +
		enc.EncodeToString(fmt.Appendf(nil, `{"iss":"idp","sub":%q,"exp":%d}`, subject, time.Now().Add(time.Hour).Unix()))
	hash := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + enc.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func jwks(t testing.TB, key *ecdsa.PrivateKey) string {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding
	return fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","x":%q,"y":%q}]}`, enc.EncodeToString(point[1:33]), enc.EncodeToString(point[33:]))
}

// Who asks is read from the certificate and the token that Envoy has checked; a header names somebody only if the
// certificate is trusted.
func TestIdentityInEnvoy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newAuthority(t, dir)
	server := ca.issue("")
	writePEM(t, filepath.Join(dir, "server.pem"), "CERTIFICATE", server.Certificate[0])
	der, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(dir, "server.key"), "PRIVATE KEY", der)
	idp, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mock := startMock(t)
	host, port, _ := strings.Cut(mock.addr, ":")
	config := strings.NewReplacer("DIR", dir, "JWKS", jwks(t, idp), "POLICY", strings.Join(strings.Fields(identityPolicy), " "),
		"WASM", strings.TrimSpace(run(t, "wasm", "--dir", dir)), "HOST", host, "PORT", port).Replace(identityEnvoy)
	log := new(output)
	p, err := envoy.Run(context.Background(), envoy.Options{Bootstrap: []byte(config), Concurrency: 2, Log: log, StartTimeout: startTimeout})
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(log.String(), 3000))
	}
	t.Cleanup(func() { _ = p.Stop() })
	proxy, err := p.Listener(context.Background(), "weir")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, uri, token, tenant string
		limit                    string
	}{
		{"a certificate", "spiffe://mesh/agents/a", "", "", "200"},
		{"a certificate that is not trusted, and a header", "spiffe://mesh/agents/a", "", "boss", "200"},
		{"a trusted certificate, and a header", "spiffe://mesh/trusted/gateway", "", "boss", "300"},
		{"a token", "spiffe://mesh/agents/a", token(t, idp, "alice"), "", "100"},
		{"a token, and a header that is not trusted", "spiffe://mesh/agents/a", token(t, idp, "alice"), "boss", "100"},
		{"a certificate without a name", "", "", "boss", "400"},
	} {
		roots := x509.NewCertPool()
		roots.AddCert(ca.cert)
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{ca.issue(row.uri)}}}}
		r := call{output: 1000}.request(proxy) // more than any of the limits
		r.URL.Scheme = "https"
		r.Header.Del("x-tenant")
		if row.tenant != "" {
			r.Header.Set("x-tenant", row.tenant)
		}
		if row.token != "" {
			r.Header.Set("authorization", "Bearer "+row.token)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(row.name, err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := fmt.Sprintf(`"tenant-tpm";q=%s;w=60`, row.limit); resp.StatusCode != 413 || resp.Header.Get("ratelimit-policy") != want {
			t.Errorf("%s: %d %s, want %s\n%s", row.name, resp.StatusCode, resp.Header.Get("ratelimit-policy"), want, b)
		}
	}
}
