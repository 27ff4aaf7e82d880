// SPDX-License-Identifier: Apache-2.0

// Pusher is a control plane for one Envoy, which pushes shares as often as it is told: make bench-pushes measures what they cost.
//
//	pusher -policy FILE -xds ADDR -status ADDR -listen ADDR
//
// POST /pushes?rate=N has it push N documents a second from now on, each with a new grant of every key that the Envoy has
// reported, of the same terms; GET /pushes tells what came of it. What nobody has asked for is granted once, so that the Envoy limits.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/weirproxy/weir/controlplane/translate"
	"github.com/weirproxy/weir/controlplane/xds"
	"github.com/weirproxy/weir/policy/fleet"
	"github.com/weirproxy/weir/policyfile"
)

func main() {
	file, listen := flag.String("policy", "", "policy file"), flag.String("listen", "", "where the Envoy takes requests")
	xdsAddr, status := flag.String("xds", "", "address for the Envoy"), flag.String("status", "", "address for reports and orders")
	flag.Parse()
	r, err := policyfile.Read(*file)
	if err == nil {
		r, err = r.Shared()
	}
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", *xdsAddr)
	if err != nil {
		log.Fatal(err)
	}
	p := &pusher{keys: map[string]*key{}, xds: xds.New(xds.Options{})}
	p.xds.Update(func(n xds.Node) (*translate.Set, error) {
		return translate.Resources(translate.Input{
			Spec: r.Spec, Policy: r.JSON, BodyCap: r.Policy.MostHeld(), Listen: *listen, Wasm: n.Wasm, CAFile: cmp.Or(n.CAFile, translate.DefaultCAFile),
		})
	})
	m := http.NewServeMux()
	m.HandleFunc("POST "+fleet.ReportPath, p.serveReport)
	m.HandleFunc("POST /pushes", p.order)
	m.HandleFunc("GET /pushes", p.tell)
	failed := make(chan error, 2)
	go func() { failed <- p.xds.Serve(context.Background(), l) }()
	go func() { failed <- http.ListenAndServe(*status, m) }()
	go p.run()
	log.Fatal(<-failed)
}

func (p *pusher) serveReport(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, fleet.MaxMessage))
	if err != nil {
		return
	}
	m, err := fleet.DecodeFromNode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if hello := p.hear(m); hello {
		_, _ = w.Write(fleet.Hello{Epoch: epoch}.Encode())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *pusher) order(w http.ResponseWriter, r *http.Request) {
	rate, err := strconv.Atoi(r.FormValue("rate"))
	if err != nil || rate < 0 {
		http.Error(w, "a rate is a number", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.every = 0
	if rate > 0 {
		p.every = time.Second / time.Duration(rate)
	}
}

func (p *pusher) tell(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(p.counts())
}
