// SPDX-License-Identifier: Apache-2.0

package translate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, key := a.sign(t, *a.cert)
	var err error
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.key = key
	must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// sign signs a certificate for a new key; the first one it signs itself.
func (a *authority) sign(t *testing.T, c x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, a.cert, &key.PublicKey, signer)
	must(t, err)
	return der, key
}

// serve serves TLS with a certificate for certain names, and gives the port. The answer is protocol and host.
func (a *authority) serve(t *testing.T, names x509.Certificate) string {
	t.Helper()
	der, key := a.sign(t, names)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "websocket" && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			return
		}
		fmt.Fprintf(w, "%s %s", r.Proto, r.Host)
	}))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	up.EnableHTTP2 = true
	up.Config.ErrorLog = log.New(io.Discard, "", 0) // three of them fail on purpose
	up.StartTLS()
	t.Cleanup(up.Close)
	_, port, err := net.SplitHostPort(up.Listener.Addr().String())
	must(t, err)
	return port
}
