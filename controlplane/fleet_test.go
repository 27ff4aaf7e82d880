// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/controlplane/fleet"
	"github.com/weirproxy/weir/controlplane/fleet/fleettest"
	"github.com/weirproxy/weir/controlplane/store"
	pfleet "github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

const shared = `apiVersion: weir/v1
providers:
  p: {upstream: "http://127.0.0.1:1", dialect: generic, models: {m: {tpm: 6000, window: 2s, burst: 20%}}}
fleet: {lease: 2s, max_envoys: 4}
`

// A fleetRig is some clients of a control plane, and what all of them have spent.
type fleetRig struct {
	*plane
	name    string // of the quota
	window  time.Duration
	memory  int64
	limit   int64
	mu      sync.Mutex
	spent   []spending
	lose    bool
	silent  atomic.Bool // no report arrives
	clients []*fleettest.Client
}

type spending struct {
	at    time.Time
	units int64
}

func newFleetRig(t *testing.T, change func(*Config)) *fleetRig {
	t.Helper()
	r := &fleetRig{plane: run(t, shared, change)}
	p, err := policyfile.Parse("p", []byte(shared))
	must(t, err)
	e := p.Policy.Entries()[0]
	m := &e.Limit.Meters[0]
	r.name = pfleet.Name{Tier: e.Tier, Dimension: m.Dimension, Key: e.Key, Window: m.Window().Milliseconds()}.String()
	r.window, r.limit = m.Window(), m.Limit()
	r.memory = pfleet.MemoryOf(int64(m.Window()), int64(p.Policy.Fleet.Jitter))
	r.eventually("loaded", func(st Status) bool { return st.Policy != nil })
	return r
}

// join starts a client with a demand in units per second, until stop.
func (r *fleetRig) join(name string, incarnation uint64, perSecond float64) (stop func()) {
	r.t.Helper()
	params := pfleet.DefaultParams()
	params.Lease = 2 * time.Second
	e := fleettest.New(name, incarnation, params)
	c := fleettest.NewClient(e)
	c.XDS, c.Control, c.Every = r.xds, strings.TrimPrefix(r.url, "http://"), 10*time.Millisecond
	s := e.Share(c.Now(), r.name, int64(r.window), r.memory)
	last, rest := c.Now(), 0.0
	c.Tick = func(now int64, e *fleettest.Envoy) {
		rest += perSecond * float64(now-last) / 1e9
		units := int64(rest)
		rest, last = rest-float64(units), now
		if taken := e.Offer(now, s, units, 1+units/10); taken > 0 {
			r.mu.Lock()
			r.spent = append(r.spent, spending{time.Now(), taken})
			r.mu.Unlock()
		}
	}
	c.Drop = func() bool {
		if r.silent.Load() {
			return true
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.lose && time.Now().UnixNano()%3 > 0
	}
	r.clients = append(r.clients, c)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return stop
}

// most is the most that any window had since a time.
func (r *fleetRig) most(since time.Time) (most int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return mostIn(slices.DeleteFunc(slices.Clone(r.spent), func(s spending) bool { return s.at.Before(since) }), r.window)
}

// mostIn is the most that any window had. It puts them in order.
func mostIn(spent []spending, window time.Duration) (most int64) {
	slices.SortFunc(spent, func(a, b spending) int { return a.at.Compare(b.at) })
	sum, from := int64(0), 0
	for _, s := range spent {
		for sum += s.units; s.at.Sub(spent[from].at) >= window; from++ {
			sum -= spent[from].units
		}
		most = max(most, sum)
	}
	return most
}

func volatile(fresh bool) func(*Config) {
	return func(c *Config) { c.Fleet = fleet.NewVolatile(fresh) }
}

func (r *fleetRig) restart() {
	r.t.Helper()
	r.stop()
	c := r.s.config
	address := c.Store.String()
	must(r.t, c.Store.Close())
	var err error
	c.Store, err = store.Open(address)
	must(r.t, err)
	c.XDS, err = net.Listen("tcp", r.xds)
	must(r.t, err)
	status, err := net.Listen("tcp", strings.TrimPrefix(r.url, "http://"))
	must(r.t, err)
	c.Status = []net.Listener{status}
	r.start(c)
}

// Nodes with real streams and real reports never spend more than the quota together: while they join, while demand moves, when
// reports are lost, when a node starts again, and when the control plane does, twice.
func TestFleetOverTheNetwork(t *testing.T) {
	r := newFleetRig(t, func(c *Config) {
		var err error
		c.Store, err = store.Open("bolt:" + filepath.Join(t.TempDir(), "state"))
		must(t, err)
	})
	defer func() { r.stop(); must(t, r.s.config.Store.Close()) }()
	first := r.eventually("it leads", func(st Status) bool { return st.Lead.Leads }).Fleet.Epoch
	begun := time.Now()
	r.join("a", 1, 4000)
	stop := r.join("b", 1, 2000)
	r.eventually("all of it lent", func(st Status) bool {
		return len(st.Fleet.Quotas) == 1 && st.Fleet.Quotas[0].Granted > r.limit*8/10 && len(st.Fleet.Quotas[0].Holders) == 2
	})
	time.Sleep(2 * time.Second)
	r.mu.Lock()
	r.lose = true
	r.mu.Unlock()
	r.join("c", 1, 4000)
	time.Sleep(2 * time.Second)
	r.restart()
	stop()
	r.join("b", 2, 2000)
	time.Sleep(3 * time.Second)
	r.mu.Lock()
	r.lose = false
	r.mu.Unlock()
	r.restart()
	st := r.eventually("all of it lent again", func(st Status) bool {
		return len(st.Fleet.Quotas) == 1 && st.Fleet.Quotas[0].Granted > r.limit*7/10 && len(st.Fleet.Quotas[0].Holders) == 3
	})
	if st.Fleet.Epoch <= first || st.Fleet.Epoch != st.Lead.Epoch || st.Fleet.Quotas[0].Quota != "provider p/m" {
		t.Errorf("got %+v", st.Fleet)
	}
	time.Sleep(time.Second)
	if most := r.most(begun); most > r.limit || most < r.limit/2 {
		t.Errorf("at most %d in a window, the limit is %d", most, r.limit)
	}
}

// A limit that is halved holds a lease and a window later at the latest, and the nodes hear of it at once.
func TestQuotaCut(t *testing.T) {
	r := newFleetRig(t, volatile(true))
	r.join("a", 1, 4000)
	r.join("b", 1, 4000)
	r.eventually("all of it lent", func(st Status) bool {
		return len(st.Fleet.Quotas) == 1 && st.Fleet.Quotas[0].Granted > r.limit*8/10
	})
	r.write(strings.Replace(shared, "6000", "3000", 1))
	at := time.Now()
	r.eventually("taken back", func(st Status) bool {
		return st.Fleet.Quotas[0].Limit == r.limit/2 && st.Fleet.Quotas[0].Granted <= r.limit/2
	})
	t.Logf("taken back after %v", time.Since(at))
	time.Sleep(r.window + 2*time.Second)
	since := time.Now()
	time.Sleep(r.window)
	if most := r.most(since); most > r.limit/2 {
		t.Errorf("at most %d in a window, the limit is %d", most, r.limit/2)
	}
}

// That an Envoy has accepted a configuration does not mean that its workers have it: only a report frees what it says is over.
func TestAcceptedIsNotApplied(t *testing.T) {
	r := newFleetRig(t, volatile(true))
	r.join("a", 1, 4000)
	r.eventually("all of it lent", func(st Status) bool {
		return len(st.Fleet.Quotas) == 1 && st.Fleet.Quotas[0].Granted > r.limit*8/10 && !st.Fleet.Quotas[0].Holders[0].Behind
	})
	r.silent.Store(true)
	r.write(strings.Replace(shared, "6000", "3000", 1))
	st := r.eventually("cut, pushed and accepted", func(st Status) bool {
		q := &st.Fleet.Quotas[0]
		shares := st.Nodes[0].Types[len(st.Nodes[0].Types)-1]
		return q.Limit == r.limit/2 && q.Holders[0].Behind && shares.Name == "shares" && shares.Acked == shares.Sent
	})
	if q := st.Fleet.Quotas[0]; q.Granted <= q.Limit {
		t.Errorf("of what was lent before the cut only %d counts, though no report has said that it is over", q.Granted)
	}
	r.silent.Store(false)
	r.eventually("acknowledged", func(st Status) bool { q := st.Fleet.Quotas[0]; return q.Granted <= q.Limit })
}

// A stuckStore takes no record before it is let go.
type stuckStore struct {
	*fleet.Volatile
	begun chan struct{}
	stuck chan struct{}
	once  *sync.Once
}

func (s stuckStore) Save([]fleet.Record) error {
	s.once.Do(func() { close(s.begun) })
	<-s.stuck
	return nil
}

// A policy comes to Envoys while the controller waits for its store, as one whose disk stands still makes it do; the controller has
// it, and the newest one, as soon as it can.
func TestPolicyDoesNotWaitForTheStore(t *testing.T) {
	st := stuckStore{fleet.NewVolatile(true), make(chan struct{}), make(chan struct{}), new(sync.Once)}
	r := newFleetRig(t, func(c *Config) { c.Fleet = st })
	letGo := sync.OnceFunc(func() { close(st.stuck) })
	defer letGo()
	r.join("a", 1, 4000)
	<-st.begun
	for _, limit := range []string{"5000", "4000", "3000"} {
		was := r.status().Policy.Version
		r.write(strings.Replace(shared, "6000", limit, 1))
		r.eventually("accepted: "+limit, func(st Status) bool {
			return st.Policy.Version != was && len(st.Nodes) == 1 && st.Nodes[0].Policy == st.Policy.Version
		})
	}
	letGo()
	r.eventually("taken", func(st Status) bool { return len(st.Fleet.Quotas) == 1 && st.Fleet.Quotas[0].Limit == r.limit/2 })
}

func TestReportsAreChecked(t *testing.T) {
	r := newFleetRig(t, volatile(false))
	r.join("a", 1, 10)
	r.eventually("connected", func(st Status) bool { return len(st.Nodes) == 1 })
	good := (&pfleet.FromNode{Node: "a", Incarnation: 9, Number: 1, Report: &pfleet.Report{Number: 1}}).Encode()
	hello := (&pfleet.FromNode{Node: "a", Incarnation: 9, Number: 2, Report: &pfleet.Report{Number: 2, Holdings: []pfleet.Holding{{Key: r.name}}}}).Encode()
	for _, c := range []struct {
		what, host, typ string
		body            []byte
		want            int
	}{
		{"under the cluster's name", pfleet.ControlCluster, pfleet.ReportType, good, 200}, // of another epoch: hello
		{"again", "", pfleet.ReportType, good, 204},
		{"of an earlier epoch", "", pfleet.ReportType, hello, 200},
		{"from a web page", "", "text/plain", good, 415},
		{"of a stranger", "", pfleet.ReportType, (&pfleet.FromNode{Node: "b", Incarnation: 9, Number: 1}).Encode(), 403},
		{"not of this kind", "", pfleet.ReportType, []byte("{}"), 400},
		{"too long", "", pfleet.ReportType, make([]byte, pfleet.MaxMessage+1), 413},
	} {
		if status, answer := r.post(c.host, c.typ, c.body); status != c.want {
			t.Errorf("%s: got %d %q, want %d", c.what, status, answer, c.want)
		} else if h, err := pfleet.DecodeHello([]byte(answer)); c.want == 200 && (err != nil || h.Epoch != r.s.leading().Epoch()) {
			t.Errorf("%s: got %q", c.what, answer)
		}
	}
	limited := 0
	for range 3 * reportBurst {
		if status, _ := r.post("", pfleet.ReportType, good); status == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited == 0 {
		t.Error("reports without end were taken")
	}
}

func (r *fleetRig) post(host, typ string, body []byte) (int, string) {
	r.t.Helper()
	q, err := http.NewRequest(http.MethodPost, r.url+pfleet.ReportPath, bytes.NewReader(body))
	must(r.t, err)
	q.Host = host
	q.Header.Set("Content-Type", typ)
	resp, err := http.DefaultClient.Do(q)
	must(r.t, err)
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	must(r.t, err)
	return resp.StatusCode, b.String()
}
