// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet/fleettest"
	"github.com/weirproxy/weir/controlplane/store"
	"github.com/weirproxy/weir/controlplane/store/storetest"
	"github.com/weirproxy/weir/policy"
	pfleet "github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

// A replica of a test is a process of its own, so that it can be killed and paused.

const replicaEnv = "WEIR_TEST_REPLICA"

// replicaConfig says what the process does.
type replicaConfig struct {
	Policy, Store, XDS, Status, Name string
	Lease                            time.Duration
}

func TestMain(m *testing.M) {
	if text := os.Getenv(replicaEnv); text != "" {
		if err := beReplica(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func beReplica(text string) error {
	var c replicaConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	xds, err := net.Listen("tcp", c.XDS)
	if err != nil {
		return err
	}
	status, err := net.Listen("tcp", c.Status)
	if err != nil {
		return err
	}
	var kept store.Store
	if c.Store != "" {
		if kept, err = store.Open(c.Store); err != nil {
			return err
		}
		defer kept.Close()
	}
	s, err := New(Config{
		PolicyFile: c.Policy, XDS: xds, Status: []net.Listener{status}, Listen: "127.0.0.1:0", Poll: 50 * time.Millisecond, Store: kept,
		Name: c.Name, Lease: c.Lease, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return s.Run(ctx)
}

type replica struct {
	replicaConfig
	t   *testing.T
	cmd *exec.Cmd
	log *os.File
}

func newReplica(t *testing.T, c replicaConfig) *replica {
	t.Helper()
	for _, addr := range []*string{&c.XDS, &c.Status} {
		l := listen(t)
		*addr = l.Addr().String()
		l.Close()
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	r := &replica{replicaConfig: c, t: t, log: log}
	t.Cleanup(func() {
		r.end(syscall.SIGKILL)
		b, _ := os.ReadFile(log.Name())
		if bytes.Contains(b, []byte("DATA RACE")) || bytes.Contains(b, []byte("panic")) {
			t.Errorf("%s has failed", c.Name)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", c.Name, b)
		}
		log.Close()
	})
	r.start()
	return r
}

func (r *replica) start() {
	r.t.Helper()
	text, err := json.Marshal(r.replicaConfig)
	must(r.t, err)
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), replicaEnv+"="+string(text))
	r.cmd.Stderr = r.log
	must(r.t, r.cmd.Start())
}

// end ends it by a signal.
func (r *replica) end(s syscall.Signal) {
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(s)
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

// status is what it says of itself; nil if it does not.
func (r *replica) status() *Status {
	c := http.Client{Timeout: 300 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + r.Status + "/api/status")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	st := new(Status)
	if json.NewDecoder(resp.Body).Decode(st) != nil {
		return nil
	}
	return st
}

// A balancer gives each connection to another one of the addresses that are up, and breaks those of one that goes down.
type balancer struct {
	addr string
	mu   sync.Mutex
	up   []string
	next int
	open map[net.Conn]string
}

func newBalancer(t *testing.T, up ...string) *balancer {
	l := listen(t)
	b := &balancer{addr: l.Addr().String(), up: up, open: map[net.Conn]string{}}
	t.Cleanup(func() { l.Close(); b.set() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.carry(c)
		}
	}()
	return b
}

func (b *balancer) carry(c net.Conn) {
	defer c.Close()
	b.mu.Lock()
	if len(b.up) == 0 {
		b.mu.Unlock()
		return
	}
	b.next++
	to := b.up[b.next%len(b.up)]
	b.open[c] = to
	b.mu.Unlock()
	defer func() { b.mu.Lock(); delete(b.open, c); b.mu.Unlock() }()
	d, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer d.Close()
	go func() { _, _ = io.Copy(d, c); d.Close() }()
	_, _ = io.Copy(c, d)
}

// set says which addresses are up.
func (b *balancer) set(up ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up = up
	for c, to := range b.open {
		if !slices.Contains(up, to) {
			c.Close()
		}
	}
}

const replicated = `apiVersion: weir/v1
providers:
  p: {upstream: "http://127.0.0.1:1", dialect: generic, models: {m: {tpm: 60_000, window: 2s, burst: 20%}}}
limits: {tenant: {default: {rpd: 2000, reset: UTC}}}
fleet: {lease: 2s, max_envoys: 4}
`

// A replicaRig is replicas, Envoys whose streams and reports go to any of them, and what all Envoys have spent.
type replicaRig struct {
	t          *testing.T
	replicas   []*replica
	xds, posts *balancer
	window     time.Duration
	limit, day int64

	tokens, days string // names of quotas
	memory       int64

	mu     sync.Mutex
	spent  []spending
	used   int64  // of the day
	silent string // no report of this Envoy arrives
}

func newReplicaRig(t *testing.T, address string, n int) *replicaRig {
	r := &replicaRig{t: t}
	p, err := policyfile.Parse("p", []byte(replicated))
	must(t, err)
	for _, e := range p.Policy.Entries() {
		m := &e.Limit.Meters[0]
		name := pfleet.Name{Tier: e.Tier, Dimension: m.Dimension, Key: e.Key, Entry: policy.EntryKey(p.Policy.Hasher, e.Tier, e.Name), Window: m.Window().Milliseconds()}
		if e.Tier == policy.TierProvider {
			r.tokens, r.window, r.limit = name.String(), m.Window(), m.Limit()
			r.memory = pfleet.MemoryOf(int64(m.Window()), int64(p.Policy.Fleet.Jitter))
			continue
		}
		_, until := m.WindowAt(time.Now().UnixNano())
		name.Key, name.Period = p.Policy.Hasher.Key(policy.TierTenant, "t"), until/int64(time.Second)
		r.days, r.day = name.String(), m.Limit()
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(file, []byte(replicated), 0o600))
	r.xds, r.posts = newBalancer(t), newBalancer(t)
	for i := range n {
		r.replicas = append(r.replicas, newReplica(t, replicaConfig{Policy: file, Store: address, Name: fmt.Sprint("replica ", i), Lease: 1200 * time.Millisecond}))
	}
	r.up()
	return r
}

// up has the balancers use all replicas but some.
func (r *replicaRig) up(but ...*replica) {
	var xds, posts []string
	for _, p := range r.replicas {
		if !slices.Contains(but, p) {
			xds, posts = append(xds, p.XDS), append(posts, p.Status)
		}
	}
	r.xds.set(xds...)
	r.posts.set(posts...)
}

// join starts an Envoy that wants so many tokens and calls a second.
func (r *replicaRig) join(name string, incarnation uint64, tokens, calls float64) (stop func()) {
	params := pfleet.DefaultParams()
	params.Lease = 2 * time.Second
	e := fleettest.New(name, incarnation, params)
	c := fleettest.NewClient(e)
	c.XDS, c.Control, c.Every = r.xds.addr, r.posts.addr, 10*time.Millisecond
	c.HTTP = &http.Client{Transport: new(http.Transport)}
	s, stash := e.Share(c.Now(), r.tokens, int64(r.window), r.memory), e.Stash(r.days)
	last, rest, callRest := c.Now(), 0.0, 0.0
	c.Tick = func(now int64, e *fleettest.Envoy) {
		dt := float64(now-last) / 1e9
		rest, callRest, last = rest+tokens*dt, min(callRest+calls*dt, 5), now
		units := int64(rest)
		rest -= float64(units)
		taken := e.Offer(now, s, units, 1+units/100)
		used := int64(0)
		for ; callRest >= 1; callRest-- {
			if !stash.Take(now, 1) {
				e.DrawNow()
				break
			}
			used++
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.used += used
		if taken > 0 {
			r.spent = append(r.spent, spending{time.Now(), taken})
		}
	}
	c.Drop = func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.silent == name
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return stop
}

// silence has no report of an Envoy arrive.
func (r *replicaRig) silence(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = name
}

// sum is what has been spent since a time.
func (r *replicaRig) sum(since time.Time) (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spent {
		if !s.at.Before(since) {
			n += s.units
		}
	}
	return n
}

// check holds what has been spent against the limits.
func (r *replicaRig) check(what string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if most := mostIn(r.spent, r.window); most > r.limit {
		r.t.Errorf("%s: %d in a window, the limit is %d", what, most, r.limit)
	}
	if r.used > r.day {
		r.t.Errorf("%s: %d of a day's limit of %d", what, r.used, r.day)
	}
}

// leader waits until one of some replicas leads, and all others of them know it.
func (r *replicaRig) leader(what string, of ...*replica) (*replica, *Status) {
	r.t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		leads, names := 0, map[string]int{}
		var who *replica
		var st *Status
		for _, p := range of {
			s := p.status()
			if s == nil {
				continue
			}
			names[fmt.Sprint(s.Lead.Leader, s.Lead.Epoch)]++
			if s.Lead.Leads {
				leads, who, st = leads+1, p, s
			}
		}
		if leads == 1 && len(names) == 1 && names[fmt.Sprint(who.Name, st.Lead.Epoch)] == len(of) {
			return who, st
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: %d lead; known as leaders: %v", what, leads, names)
		}
	}
}

// lent waits until whoever leads says that most of the limit is lent.
func (r *replicaRig) lent(what string, nodes int) {
	r.t.Helper()
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		for _, p := range r.replicas {
			st := p.status()
			if st == nil || !st.Lead.Leads {
				continue
			}
			for _, q := range st.Fleet.Quotas {
				if q.Kind == "shares" && q.Granted > r.limit*7/10 && len(q.Holders) == nodes {
					return
				}
			}
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: not lent", what)
		}
	}
}

func (r *replicaRig) others(p *replica) (all []*replica) {
	for _, o := range r.replicas {
		if o != p {
			all = append(all, o)
		}
	}
	return all
}

// Envoys at any of three replicas never spend more than the limit, while whoever leads is killed, is paused and comes back, and is
// asked to end, and while Redis hangs and is gone.
func TestReplicas(t *testing.T) {
	t.Parallel()
	redis := storetest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	r := newReplicaRig(t, redis.URL(), 3)
	first, st := r.leader("at the start", r.replicas...)
	epoch := st.Lead.Epoch
	for i, tokens := range []float64{2000, 2000, 2000} {
		r.join(fmt.Sprint("envoy-", i), 1, tokens, 4)
	}
	r.lent("at the start", 3)
	if st := first.status(); len(st.Lead.Replicas) != 2 || st.Lead.Replicas[0] == st.Lead.Replicas[1] {
		t.Errorf("others that are known: %q", st.Lead.Replicas)
	}
	next := func(what string, old *replica) *replica {
		t.Helper()
		at := time.Now()
		who, st := r.leader(what, r.others(old)...)
		t.Logf("%s: another leads after %v", what, time.Since(at).Round(10*time.Millisecond))
		if st.Lead.Epoch <= epoch {
			t.Errorf("%s: epoch %d after %d", what, st.Lead.Epoch, epoch)
		}
		epoch = st.Lead.Epoch
		if old == first {
			time.Sleep(4 * time.Second) // its lease ends, what it has spent leaves the window
			r.silence("")
		}
		r.lent(what, 3)
		t.Logf("%s: all of it lent after %v", what, time.Since(at).Round(10*time.Millisecond))
		r.check(what)
		return who
	}

	r.silence("envoy-0") // it holds what the next one has to find out
	first.end(syscall.SIGKILL)
	r.up(first)
	second := next("killed", first)
	first.start()
	r.up()

	must(t, second.cmd.Process.Signal(syscall.SIGSTOP))
	r.up(second)
	third := next("paused", second)
	must(t, second.cmd.Process.Signal(syscall.SIGCONT)) // with reports and renewals under way
	r.up()
	if who, st := r.leader("back from a pause", r.replicas...); st.Lead.Epoch < epoch {
		t.Errorf("%s leads with epoch %d after %d", who.Name, st.Lead.Epoch, epoch)
	}
	time.Sleep(r.window)
	r.check("back from a pause")

	third.end(syscall.SIGTERM)
	r.up(third)
	fourth := next("ended", third)
	third.start()
	r.up()

	must(t, syscall.Kill(redis.PID(), syscall.SIGSTOP))
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if st := fourth.status(); st != nil && !st.Lead.Leads && st.StoreAway != "" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("without Redis it says %+v", st)
		}
	}
	time.Sleep(3 * time.Second)
	since := time.Now()
	time.Sleep(time.Second)
	if n := r.sum(since); n == 0 || n > r.limit/10 {
		t.Errorf("%d in a second without Redis: floors are a tenth", n)
	}
	must(t, syscall.Kill(redis.PID(), syscall.SIGCONT))
	next("Redis is back", nil)

	redis.Stop() // for so short a time that nobody's term is over: its file has all
	redis.Start()
	time.Sleep(2 * time.Second)
	r.leader("Redis was started again", r.replicas...)
	r.lent("Redis was started again", 3)
	since = time.Now()
	time.Sleep(2 * r.window)
	if n := r.sum(since); n < r.limit {
		t.Errorf("%d in two windows at the end, the limit of one is %d", n, r.limit)
	}
	r.check("at the end")
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("%d of a day's %d, at most %d of %d in a window", r.used, r.day, mostIn(r.spent, r.window), r.limit)
	if r.used < r.day/10 {
		t.Errorf("%d of a day's %d were used", r.used, r.day)
	}
}
