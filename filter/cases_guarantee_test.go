// SPDX-License-Identifier: Apache-2.0

package filter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/weirproxy/weir/filter/filtertest"
)

func checkNoTrap(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	if n := w.process.Metric("weir_panics_total"); n > 0 {
		w.wrong("%d panics: %v", n, w.process.Logs)
	}
	for _, c := range w.order {
		if c.became() == callWaits {
			w.wrong("%s hangs", c.id)
		}
	}
}

// checkNoHang: whether a request has a body, comes in pieces, or ends with trailers, it is decided once it is complete.
func checkNoHang(w *caseWorld, v json.RawMessage) {
	checkNoTrap(w, v)
	c := w.last()
	forms := []filtertest.Request{{}, {Trailers: true}}
	if c.body != nil {
		all := c.body.bytes()
		forms = []filtertest.Request{{Body: all}, {Chunks: pieces(all, 7)}, {Chunks: pieces(all, 7), Trailers: true}, {}}
	}
	for i, r := range forms {
		r.Method, r.Path, r.Headers = c.request.Method, c.request.Path, [][2]string{{caseIDHeader, fmt.Sprint("form", i)}}
		for name, value := range c.request.Headers {
			r.Headers = append(r.Headers, [2]string{name, value})
		}
		if x := w.process.Worker(0).Open(r); !x.Sent && x.Reply == nil {
			w.wrong("form %d hangs", i)
		}
	}
}

// checkMemory: by how much the VM grows that gets all of the case twice. The VM that starts has all tables in it.
func checkMemory(w *caseWorld, v json.RawMessage) {
	c := w.last()
	var most float64
	if json.Unmarshal(v, &most) != nil {
		w.notKnown("max_vm_mb %s", v)
	}
	if c.x.Buffered > 1<<20+2*casePieceSize {
		w.wrong("%d bytes were held", c.x.Buffered)
	}
	if grown := float64(c.worker.Memory()-w.memory) / (1 << 20); w.module != nil && grown > most {
		w.wrong("the VM grew by %.1f MB, want %v at most", grown, most)
	}
}

// checkAlloc: what reading the answer takes, all that was ever taken counted.
func checkAlloc(w *caseWorld, v json.RawMessage) {
	var most float64
	if json.Unmarshal(v, &most) != nil {
		w.notKnown("max_alloc_mb %s", v)
	}
	c := w.last()
	if got := float64(allocated(func() { w.usage(c, c.answer) })) / (1 << 20); got > most {
		w.wrong("%.1f MB were allocated, want %v at most", got, most)
	}
}

// checkInjection: nothing that a caller names gets into headers, counters or logs as it is.
func checkInjection(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	c := w.last()
	w.process.Metric("")
	var seen []string
	for _, h := range c.x.Headers[5:] {
		seen = append(seen, h[0]+": "+h[1])
	}
	if c.x.Reply != nil {
		seen = append(seen, fmt.Sprint(c.x.Reply.Headers))
	}
	for name := range w.process.Metrics {
		seen = append(seen, name)
	}
	for _, s := range append(seen, w.process.Logs...) {
		if strings.ContainsAny(s, "\r\n\x00") || strings.Contains(s, "x-evil") || len(s) > 1024 {
			w.wrong("%.100q", s)
		}
	}
}

// checkBoundedKeys: other names in each request make no new keys without end, neither in shared data nor in counters.
func checkBoundedKeys(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	c := w.last()
	try := func(n int) (keys, counters int) {
		for i := range n {
			r := *c.request
			r.Body = bytes.Replace(r.Body, []byte(`"model":`), fmt.Appendf(nil, `"model":"m%d-%d","x":`, n, i), 1)
			r.Body = bytes.Replace(r.Body, []byte(`"model": `), fmt.Appendf(nil, `"model": "m%d-%d","x":`, n, i), 1)
			b, _ := r.body()
			r.send(c.worker, b, [][2]string{{caseIDHeader, "bounded"}}).Close()
		}
		w.process.Metric("")
		return w.process.Store.Len(), len(w.process.Metrics)
	}
	keys, counters := try(50)
	if k, m := try(500); k > keys || m > counters {
		w.wrong("%d keys and %d counters became %d and %d", keys, counters, k, m)
	}
}

// checkDocumented: the documentation of set-ups names every filter of the case's chain that is not the router.
func checkDocumented(w *caseWorld, v json.RawMessage) {
	wantTrue(w, v)
	docs, err := os.ReadFile("../docs/envoy.md")
	if err != nil {
		w.wrong("%v", err)
	}
	for _, f := range w.c.Input.FilterChain {
		name, _, _ := strings.Cut(f, "(")
		short := name[strings.LastIndexByte(name, '.')+1:]
		if short != "ours" && short != "router" && !strings.Contains(string(docs), "`"+short+"` filter before weir") {
			w.wrong("docs/envoy.md does not say where the %s filter stands", short)
		}
	}
	if w.last().became() != callAdmitted {
		w.wrong("%s", w.last().reason())
	}
}
