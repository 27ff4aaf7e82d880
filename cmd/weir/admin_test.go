// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane"
	"github.com/weirproxy/weir/controlplane/access"
)

const (
	testAdminToken = "admin-admin-admin-admin-admin-admin"
	testReadToken  = "read-read-read-read-read-read-read"
)

// serveFor runs a control plane that knows an admin and a reader, and gives its status address and its token file.
func serveFor(t *testing.T, policy string) (addr, tokens string) {
	t.Helper()
	tokens = write(t, "tokens", "admin alice "+testAdminToken+"\nread bob "+testReadToken+"\n")
	guard, err := access.New(access.Files{Tokens: tokens}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s, err := controlplane.New(controlplane.Config{
		PolicyFile: write(t, "policy.yaml", policy), XDS: l[0], Status: l[1:], Listen: "127.0.0.1:0", Access: guard, Poll: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	addr = l[1].Addr().String()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			r.Body.Close()
		}
		if err == nil && r.StatusCode == 200 {
			return addr, tokens
		}
		if time.Now().After(end) {
			t.Fatal("not ready")
		}
	}
}

const adminPolicy = `apiVersion: weir/v1
providers: {openai: {upstream: "http://openai.test", models: {"*": {tpm: 9000}}}}
limits: {tenant: {default: {tpm: 1000}}}
`

// What the command line asks for holds, is said, and is on the status; who may not, is told how.
func TestAdminCommands(t *testing.T) {
	addr, tokens := serveFor(t, adminPolicy)
	reader := write(t, "reader", "read bob "+testReadToken)
	for _, row := range []struct {
		args string
		code int
		says []string
	}{
		{"enforce --token-file READER", 0, []string{"enforce on", "which is enforce"}},
		{"enforce shadow --token-file TOKENS", 0, []string{"enforce shadow", "no store"}},
		{"enforce --json --token-file TOKENS", 0, []string{`"enforce": "shadow"`, `"mode": "shadow"`, `"kept": false`}},
		{"enforce off --token-file TOKENS", 0, []string{"nothing is counted"}},
		{"enforce on --token-file READER", 2, []string{"something else", "--token-file"}},
		{"enforce on", 2, []string{"bearer token", "WEIR_TOKEN"}},
		{"enforce never", 2, []string{"never"}},
		{"enforce on --token-file /nowhere", 2, []string{"/nowhere"}},
		{"enforce on --control http://10.0.0.1:1 --token-file TOKENS", 2, []string{"plain text"}},
		{"enforce on --control 127.0.0.1:1 --token-file TOKENS", 1, []string{"no control plane answers at http://127.0.0.1:1"}},
		{"enforce on --token-file TOKENS", 0, []string{"enforce on"}},
		{"grant --token-file TOKENS", 0, []string{"No grants"}},
		{"grant acme +50k --for 1h --token-file TOKENS", 0, []string{"acme has 50000 more tpm until", "no store"}},
		{"grant acme 7 --for 2h --json --token-file TOKENS", 0, []string{`"add": "7"`, `"by": "alice"`}},
		{"grant --token-file READER", 0, []string{"acme    tpm    50000", "alice"}},
		{"grant acme +5 --limit rpd --token-file TOKENS", 2, []string{"no limit rpd: write one of tpm"}},
		{"grant acme +5x --token-file TOKENS", 2, []string{"+50k"}},
		{"grant acme --token-file TOKENS", 2, []string{"+50k"}},
		{"grant acme +5 --for 900h --token-file TOKENS", 2, []string{"lasts at most"}},
		{"grant acme --end --token-file TOKENS", 0, []string{"50000"}},
		{"grant acme --end --token-file TOKENS", 2, []string{"has no grant"}},
	} {
		args := strings.Fields(strings.NewReplacer("TOKENS", tokens, "READER", reader).Replace(row.args))
		if !strings.Contains(row.args, "--control") {
			args = append(args, "--control", addr)
		}
		code, out, errs := weir(t, "", args...)
		if code != row.code {
			t.Errorf("%s: code %d", row.args, code)
		}
		for _, say := range row.says {
			if !strings.Contains(out+errs, say) {
				t.Errorf("%s: no %q in\n%s%s", row.args, say, out, errs)
			}
		}
	}
}

func TestAmounts(t *testing.T) {
	for word, want := range map[string]int64{"+50k": 50_000, "2M": 2_000_000, "50_000": 50_000, "+1": 1, "0": 0, "-5": 0, "k": 0, "": 0, "5kk": 0, "2000000G": 0, "++5": 0} {
		if n, err := parseAmount(word); int64(n) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", word, n, err)
		}
	}
}
