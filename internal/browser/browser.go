// SPDX-License-Identifier: Apache-2.0

// Package browser shows pages in a real Chromium, for tests: what its console says, which addresses a page asks for, and what axe-core
// finds that keeps people from using it.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A Browser is a real one that shows a page.
type Browser struct {
	t   testing.TB
	ctx context.Context
	axe string // the file of axe-core

	mu         sync.Mutex
	complaints []string // of its console
	asked      []string // other addresses than the page's own
}

// chromium finds the browser.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium: make test installs what is missing, or says what to install")
	return ""
}

// Start starts a browser, which ends with the test. Tools is the folder into which hack/get-page-tools.sh has put axe-core.
func Start(t testing.TB, tools string) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true)) // it shows nothing but what this test serves
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &Browser{t: t, ctx: ctx, axe: filepath.Join(tools, "page", "axe.js")}
	must(t, chromedp.Listen(ctx, b.event)) // the first use starts it
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	return b
}

// call sends the browser a command.
func call[P, R any](b *Browser, command cdp.Command[P, R], p P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	r, err := chromedp.Call(ctx, command, p)
	must(b.t, err)
	return r
}

// Eval gives what a script says.
func Eval[T any](b *Browser, script string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, options...))
	must(b.t, err)
	return v
}

func (b *Browser) event(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		b.complaints = append(b.complaints, fmt.Sprintf("console.%s", e.Type))
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// Do has the browser do something, within a minute: the machine may be busy.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	must(b.t, chromedp.Do(ctx, actions...))
}

// Text is what people read in an element.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return Eval[string](b, "document.querySelector("+strconv.Quote(selector)+").innerText")
}

// Await waits until a script says true.
func (b *Browser) Await(script string) {
	b.t.Helper()
	end := time.Now().Add(30 * time.Second)
	for !Eval[bool](b, "Boolean("+script+")") {
		if time.Now().After(end) {
			b.t.Fatalf("never: %s\n%s\n%q", script, b.Text("body"), b.complaints)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Size sets how large the window is, and whether colors are dark.
func (b *Browser) Size(width, height int64, scheme string) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// Picture takes one of the whole page, if WEIR_PICTURES names a folder for them.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	dir := os.Getenv("WEIR_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	must(b.t, err)
	must(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// Axe looks for what keeps people from using the page.
func (b *Browser) Axe() {
	b.t.Helper()
	source, err := os.ReadFile(b.axe)
	if err != nil {
		b.t.Fatalf("make test fetches axe-core: %v", err)
	}
	Eval[int](b, string(source)+";0")
	text := Eval[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]})
		.then(r => JSON.stringify({passes: r.passes.length, violations: r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary)])}))`,
		chromedp.EvalAwaitPromise)
	var result struct {
		Passes     int
		Violations []any
	}
	must(b.t, json.Unmarshal([]byte(text), &result))
	if result.Passes < 20 {
		b.t.Errorf("axe has looked at %d things only", result.Passes)
	}
	for _, v := range result.Violations {
		b.t.Errorf("axe: %v", v)
	}
}

// Quiet fails the test if the console has said anything, or if anything was loaded from elsewhere.
func (b *Browser) Quiet(origin string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("the console says %s", c)
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, origin) && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page asks for %s", url)
		}
	}
	if len(b.asked) < 10 {
		b.t.Errorf("the page has asked for %q only", b.asked)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
