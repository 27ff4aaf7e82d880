// SPDX-License-Identifier: Apache-2.0

package envoytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A CA issues certificates in a test.
type CA struct {
	PEM []byte

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes one.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, cert: template("test CA")}
	ca.cert.IsCA, ca.cert.BasicConstraintsValid, ca.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.PEM, ca.key = ca.sign(ca.cert, nil)
	return ca
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// sign makes a key and a certificate for it; without a key of the CA it vouches for itself.
func (ca *CA) sign(c *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.cert, &key.PublicKey, by)
	if err != nil {
		ca.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// Issue writes ca.crt, tls.crt and tls.key into a folder, each at once, for names that are addresses, URIs or DNS names.
func (ca *CA) Issue(dir string, names ...string) {
	ca.t.Helper()
	c := template(names[0])
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, n := range names {
		switch ip := net.ParseIP(n); {
		case ip != nil:
			c.IPAddresses = append(c.IPAddresses, ip)
		case strings.Contains(n, "://"):
			u, err := url.Parse(n)
			if err != nil {
				ca.t.Fatal(err)
			}
			c.URIs = append(c.URIs, u)
		default:
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	cert, key := ca.sign(c, ca.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"ca.crt": ca.PEM, "tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", b, 0o600); err != nil {
			ca.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			ca.t.Fatal(err)
		}
	}
}
