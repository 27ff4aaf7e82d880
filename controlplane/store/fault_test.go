// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirproxy/weir/controlplane/store/storetest"
	"github.com/weirproxy/weir/policy"
)

// writerEnv makes the test program the process that is killed.
const writerEnv = "WEIR_STORE_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

var daily = policy.MeterSpec{Dimension: policy.RPD, Limit: 1_000_000, BurstShare: policy.Whole}

// writeUntilKilled takes from a day's quota, and says each time when it holds.
func writeUntilKilled(path string) {
	s, err := OpenBolt(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	term, err := s.Lead(context.Background(), "shares", "child", time.Minute)
	for n := 0; err == nil; n++ {
		_, err = s.Take(context.Background(), takeOf(fmt.Sprint(os.Getpid(), "-", n), 1, daily))
		if err == nil {
			err = s.Save(context.Background(), term, Record{"n", fmt.Append(nil, n)})
		}
		fmt.Println(n)
	}
	fmt.Println(err)
	os.Exit(1)
}

// A control plane that is killed while it writes starts again, and no call that it had admitted is forgotten.
func TestKilledWhileItWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	total := int64(0)
	token := uint64(0)
	for round := range 5 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		last := ""
		for lines, n := bufio.NewScanner(out), 0; lines.Scan(); n++ {
			if last = lines.Text(); n == 20+7*round {
				must(t, cmd.Process.Signal(syscall.SIGKILL))
			}
		}
		_ = cmd.Wait()
		var n int64
		if _, err := fmt.Sscan(last, &n); err != nil {
			t.Fatalf("the child wrote %q", last)
		}
		total += n + 1
		s, err := OpenBolt(path)
		must(t, err)
		probe := takeOf(fmt.Sprint("probe", round), 1, daily)
		probe.Cost.Requests = daily.Limit + 1 // refused, and told what is left
		a, err := s.Take(t.Context(), probe)
		must(t, err)
		used := daily.Limit - a.Denied.Remaining
		if used < total || used > total+1 {
			t.Errorf("%d were admitted, one more may have been; %d are on the disk", total, used)
		}
		total = used
		kept, err := s.Load(t.Context(), "n")
		must(t, err)
		if len(kept) != 1 || string(kept[0].Value) < fmt.Sprint(n) && len(kept[0].Value) <= len(fmt.Sprint(n)) {
			t.Errorf("saved %d, found %s", n, kept)
		}
		term, err := s.Lead(t.Context(), "shares", "parent", time.Minute) // at once: the child is dead
		if must(t, err); term.Token <= token {
			t.Errorf("token %d after %d", term.Token, token)
		}
		token = term.Token
		must(t, s.Close())
	}
}

// While Redis hangs, and while it is away, each call ends in time with an error that says so, nothing piles up, and when it is
// back all goes on.
func TestRedisAway(t *testing.T) {
	server := storetest.Redis(t)
	s, err := OpenRedis(server.URL())
	must(t, err)
	spec := policy.MeterSpec{Dimension: policy.RPD, Limit: 1_000_000, BurstShare: policy.Whole}
	n := 0
	ask := func() error {
		n++
		_, err := s.Take(t.Context(), takeOf(fmt.Sprint(n), 1, spec))
		return err
	}
	must(t, ask())
	before := runtime.NumGoroutine()
	for name, f := range map[string][2]func(){
		"hangs": {
			func() { must(t, syscall.Kill(server.PID(), syscall.SIGSTOP)) },
			func() { must(t, syscall.Kill(server.PID(), syscall.SIGCONT)) },
		},
		"away": {server.Stop, server.Start},
	} {
		f[0]()
		for end := time.Now().Add(outage()); time.Now().Before(end); {
			var all sync.WaitGroup
			for range 50 {
				id := fmt.Sprint(name, n, "-", time.Now().UnixNano())
				all.Go(func() {
					start := time.Now()
					_, err := s.Take(t.Context(), takeOf(id, 1, spec))
					if took := time.Since(start); !errors.Is(err, ErrUnavailable) || took > 2*time.Second {
						t.Errorf("%s: %v after %v", name, err, took)
					}
				})
			}
			all.Wait()
			time.Sleep(50 * time.Millisecond)
		}
		if _, err := s.Lead(t.Context(), "x", "y", time.Second); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Load(t.Context(), ""); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		f[1]()
		back := time.Now()
		for ask() != nil {
			if time.Since(back) > 3*time.Second {
				t.Fatalf("%s: not back in 3 s", name)
			}
		}
		t.Logf("%s: back after %v", name, time.Since(back))
	}
	must(t, s.Close())
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}

// outage is how long Redis is away: WEIR_SOAK=1 makes it the 30 s that is promised.
func outage() time.Duration {
	if os.Getenv("WEIR_SOAK") != "" {
		return 30 * time.Second
	}
	return 3 * time.Second
}

// A Redis that is behind TLS, and a user who may no more than docs/fleet.md says.
func TestRedisTLSAndACL(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	port := freePort(t)
	server := storetest.Redis(t, "--tls-port", port, "--tls-cert-file", dir+"/cert.pem", "--tls-key-file", dir+"/key.pem",
		"--tls-ca-cert-file", dir+"/cert.pem", "--tls-auth-clients", "yes")
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	doc, err := os.ReadFile("../../docs/fleet.md")
	must(t, err)
	acl := ""
	for line := range strings.Lines(string(doc)) {
		if rest, ok := strings.CutPrefix(line, "ACL SETUSER "); ok {
			acl = strings.TrimSpace(rest)
		}
	}
	var args []any
	for _, f := range strings.Fields("ACL SETUSER " + acl) {
		args = append(args, f)
	}
	must(t, admin.Do(t.Context(), args...).Err())

	files := fmt.Sprintf("ca=%s/cert.pem&cert=%s/cert.pem&key=%s/key.pem", dir, dir, dir)
	s, err := Open(fmt.Sprintf("rediss://weir:PASSWORD@localhost:%s?%s", port, files))
	must(t, err)
	defer s.Close()
	everything(t, s)
	for name, address := range map[string]string{
		"another password": fmt.Sprintf("rediss://weir:wrong@localhost:%s?%s", port, files),
		"no certificate":   fmt.Sprintf("rediss://weir:PASSWORD@localhost:%s?ca=%s/cert.pem", port, dir),
		"another CA":       fmt.Sprintf("rediss://weir:PASSWORD@localhost:%s", port),
	} {
		other, err := Open(address)
		must(t, err)
		if _, err := other.Load(t.Context(), ""); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: got %v", name, err)
		}
		must(t, other.Close())
	}
}

// A cluster refuses scripts whose keys are in several slots.
func TestRedisCluster(t *testing.T) {
	server := storetest.Redis(t, "--cluster-enabled", "yes")
	admin := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer admin.Close()
	must(t, admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if info := admin.ClusterInfo(t.Context()).Val(); strings.Contains(info, "cluster_state:ok") {
			break
		} else if time.Now().After(end) {
			t.Fatal(info)
		}
	}
	for _, query := range []string{"?cluster=true&fleet=blue", "?cluster=true"} {
		s, err := Open(server.URL() + query)
		must(t, err)
		everything(t, s)
		must(t, admin.ScriptFlush(t.Context()).Err()) // as after a fail-over: EVALSHA does not know them
		everything(t, s)
		must(t, s.Close())
	}
}

// everything does each operation once.
func everything(t *testing.T, s Store) {
	t.Helper()
	ctx, id := t.Context(), fmt.Sprint(time.Now().UnixNano())
	k := takeOf(id, 5, policy.MeterSpec{Dimension: policy.TPD, Limit: 1000}, policy.MeterSpec{Dimension: policy.RPM, Limit: 100})
	k.Items = append(k.Items, Item{Bucket: "another", Meters: k.Items[0].Meters, InFlight: 5})
	a, err := s.Take(ctx, k)
	if must(t, err); a.Verdict != Admitted {
		t.Errorf("got %+v", a)
	}
	settled, err := s.Settle(ctx, id, policy.Cost{Requests: 1, Input: 3})
	if must(t, err); !settled {
		t.Error("not settled")
	}
	term, err := s.Lead(ctx, "shares", "me", time.Minute)
	must(t, err)
	must(t, s.Save(ctx, term, Record{"k", []byte("v")}))
	got, err := s.Load(ctx, "k")
	if must(t, err); len(got) != 1 || string(got[0].Value) != "v" {
		t.Errorf("got %v", got)
	}
	must(t, s.Resign(ctx, term))
	shared := s.(Shared)
	ctx, stop := context.WithCancel(ctx)
	heard, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		shared.Listen(ctx, func(channel string, m []byte) { heard <- channel + " " + string(m) }, "one", "two")
	}()
	for got := ""; got != "two \x00b"; { // the first ones may come before it listens
		must(t, shared.Publish(ctx, "two", []byte("\x00b")))
		select {
		case got = <-heard:
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	<-done
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// certificate writes one that vouches for itself.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	must(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	must(t, os.WriteFile(dir+"/cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
