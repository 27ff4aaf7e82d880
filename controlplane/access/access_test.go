// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/envoy/envoytest"
)

const (
	tokenA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	tokenB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	tokenC = "cccccccccccccccccccccccccccccccc"
	tokenD = "dddddddddddddddddddddddddddddddd"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestTokens(t *testing.T) {
	list := "# who\nnode egress-1 " + tokenA + "\n\nnode * " + tokenB + "\nread prom " + tokenC + "\nadmin alice " + tokenD + "\n"
	g, err := New(Files{Tokens: write(t, t.TempDir()+"/tokens", list)}, nil)
	must(t, err)
	for token, want := range map[string]struct {
		roles      Role
		may, mayNo string
	}{
		tokenA: {Node, "egress-1", "egress-2"}, tokenB: {Node, "egress-2", ""}, tokenC: {Read, "", "prom"}, tokenD: {Read | Admin, "", "alice"},
	} {
		id, err := g.Who(nil, "Bearer "+token)
		if must(t, err); id.roles != want.roles || want.may != "" && !id.MayBe(want.may) || id.MayBe(want.mayNo) {
			t.Errorf("%s: got %+v", token, id)
		}
	}
	for authorization, want := range map[string]error{"": ErrNobody, "Bearer x": ErrBadToken, tokenA: ErrBadToken, "Basic " + tokenA: ErrBadToken} {
		if _, err := g.Who(nil, authorization); !errors.Is(err, want) {
			t.Errorf("%q: got %v", authorization, err)
		}
	}
	if token, err := NodeToken([]byte(list), "egress-1"); token != tokenA || err != nil {
		t.Error(token, err)
	}
	if token, err := NodeToken([]byte(list), "egress-9"); token != tokenB || err != nil {
		t.Error(token, err)
	}
	if token, err := NodeToken([]byte(tokenC), "egress-9"); token != tokenC || err != nil {
		t.Error(token, err)
	}
	if _, err := NodeToken([]byte("admin a "+tokenC), "egress-9"); err == nil {
		t.Error("an admin's token for a node")
	}
}

func TestTokenErrorsShowNoToken(t *testing.T) {
	for want, list := range map[string]string{
		"line 1: no such role": "boss a " + tokenA,
		"line 2: write ROLE":   tokenB + "\nnode " + tokenA,
		"at least 32":          "node a short-token",
		"there before":         tokenA + "\n" + tokenA,
		"no token in it":       "# " + tokenA,
	} {
		_, err := New(Files{Tokens: write(t, t.TempDir()+"/tokens", list)}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "aaaa") || strings.Contains(err.Error(), "short") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	var log bytes.Buffer
	path := write(t, t.TempDir()+"/tokens", tokenA)
	must(t, os.Chmod(path, 0o644))
	_, err := New(Files{Tokens: path}, slog.New(slog.NewTextHandler(&log, nil)))
	if must(t, err); !strings.Contains(log.String(), "chmod 600") || strings.Contains(log.String(), tokenA) {
		t.Errorf("logged %s", &log)
	}
}

func TestFilesBelongTogether(t *testing.T) {
	for want, f := range map[string]Files{
		"needs a key":   {Cert: "x"},
		"--client-ca":   {ClientCA: "x"},
		"no such file":  {Tokens: "/none"},
		"no such file ": {Cert: "/none", Key: "/none"},
	} {
		if _, err := New(f, nil); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%+v: got %v", f, err)
		}
	}
}

// dial gives the identity that a server sees, and the certificate that the client does.
func dial(t *testing.T, g *Guard, client *tls.Config) (Identity, *x509.Certificate, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer a.Close()
	b, err := l.Accept()
	must(t, err)
	defer b.Close()
	server := tls.Server(b, g.TLS("x"))
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	c := tls.Client(a, client)
	if err := c.Handshake(); err != nil {
		return Identity{}, nil, err
	}
	if err := <-done; err != nil {
		return Identity{}, nil, err
	}
	state := server.ConnectionState()
	id, err := g.Who(&state, "")
	return id, c.ConnectionState().PeerCertificates[0], err
}

func clientOf(t *testing.T, dir string, trusts *envoytest.CA) *tls.Config {
	t.Helper()
	c := &tls.Config{ServerName: "weir.test", RootCAs: x509.NewCertPool(), NextProtos: []string{"x"}}
	c.RootCAs.AppendCertsFromPEM(trusts.PEM)
	if dir != "" {
		pair, err := tls.LoadX509KeyPair(dir+"/tls.crt", dir+"/tls.key")
		must(t, err)
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

func TestCertificates(t *testing.T) {
	ca, other := envoytest.NewCA(t), envoytest.NewCA(t)
	dir, node, admin, stranger := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	ca.Issue(dir, "weir.test")
	ca.Issue(node, "egress-1", "spiffe://corp/weir/node/egress-2", "spiffe://corp/ns/x/sa/y", "*")
	ca.Issue(admin, "spiffe://corp/weir/admin")
	other.Issue(stranger, "egress-1")
	g, err := New(Files{Cert: dir + "/tls.crt", Key: dir + "/tls.key", ClientCA: dir + "/ca.crt"}, nil)
	must(t, err)
	id, _, err := dial(t, g, clientOf(t, node, ca))
	must(t, err)
	for _, may := range []string{"egress-1", "egress-2", "spiffe://corp/ns/x/sa/y"} {
		if !id.MayBe(may) {
			t.Errorf("%s: got %+v", may, id)
		}
	}
	for _, not := range []string{"egress-3", "", "y", "spiffe://corp/weir/node/egress-2"} {
		if id.MayBe(not) {
			t.Errorf("%q is let in by %+v", not, id)
		}
	}
	if id.May(Read) || id.May(Admin) {
		t.Error("a node may more than it should")
	}
	if id, _, err = dial(t, g, clientOf(t, admin, ca)); err != nil || !id.May(Admin) || !id.May(Read) || id.May(Node) {
		t.Errorf("admin: %v %+v", err, id)
	}
	if _, _, err = dial(t, g, clientOf(t, "", ca)); !errors.Is(err, ErrNobody) {
		t.Errorf("nobody: %v", err)
	}
	if _, _, err = dial(t, g, clientOf(t, stranger, ca)); err == nil {
		t.Error("another CA's certificate is taken")
	}
	if !g.Named("weir.test") || g.Named("evil.test") {
		t.Error("names")
	}
}

// What is new in the files is taken, what is broken is not, and the log says so once.
func TestReload(t *testing.T) {
	ca := envoytest.NewCA(t)
	dir := t.TempDir()
	ca.Issue(dir, "weir.test")
	tokens := write(t, filepath.Join(dir, "tokens"), tokenA)
	var log bytes.Buffer
	g, err := New(Files{Cert: dir + "/tls.crt", Key: dir + "/tls.key", Tokens: tokens}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	serial := func() string {
		_, c, err := dial(t, g, clientOf(t, "", ca))
		if c == nil {
			t.Fatal(err)
		}
		return c.SerialNumber.String()
	}
	first := serial()
	g.look()
	if serial() != first || log.Len() > 0 {
		t.Errorf("nothing was new: %s", &log)
	}
	write(t, dir+"/tls.key", "broken")
	for range 3 {
		g.look()
	}
	if serial() != first || !strings.Contains(g.Problem(), "tls.key") || strings.Count(log.String(), "the old ones stay") != 1 {
		t.Errorf("problem %q, log %s", g.Problem(), &log)
	}
	ca.Issue(dir, "weir.test")
	write(t, tokens, "node n "+tokenB)
	g.look()
	if serial() == first || g.Problem() != "" || g.Expires().IsZero() {
		t.Errorf("problem %q, log %s", g.Problem(), &log)
	}
	if _, err := g.Who(nil, "Bearer "+tokenA); !errors.Is(err, ErrBadToken) {
		t.Errorf("a token that is no longer there: %v", err)
	}
	if id, err := g.Who(nil, "Bearer "+tokenB); err != nil || !id.MayBe("n") {
		t.Errorf("the new token: %v", err)
	}
	must(t, os.Remove(tokens))
	g.look()
	if _, err := g.Who(nil, "Bearer "+tokenB); err != nil || g.Problem() == "" {
		t.Errorf("without the file: %v, %q", err, g.Problem())
	}
}

func TestPersonToken(t *testing.T) {
	for list, want := range map[string]string{
		"node n " + tokenA + "\nread r " + tokenB:                     tokenB,
		"read r " + tokenA + "\n# admin x y\nadmin a " + tokenB:       tokenB,
		"read r " + tokenA + "\n" + tokenB + "\nnode * " + tokenC:     tokenB,
		"admin a " + tokenA + "\nadmin b " + tokenB + "\n\n" + tokenC: tokenA,
	} {
		if token, err := PersonToken([]byte(list)); token != want || err != nil {
			t.Errorf("%s: got %s, %v", list, token, err)
		}
	}
	if token, err := PersonToken([]byte("node n " + tokenA)); err == nil {
		t.Error("a node's token for a person:", token)
	}
}
