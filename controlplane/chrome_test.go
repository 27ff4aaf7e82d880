// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weirproxy/weir/internal/browser"
)

// A chrome is a browser that shows the status page, by shorter names.
type chrome struct{ *browser.Browser }

func newBrowser(t *testing.T) chrome {
	t.Helper()
	return chrome{browser.Start(t, "../.tools")}
}

func eval[T any](b chrome, script string, options ...chromedp.EvaluateOption) T {
	return browser.Eval[T](b.Browser, script, options...)
}

func (b chrome) do(actions ...chromedp.Action[chromedp.Void]) { b.Do(actions...) }
func (b chrome) text(selector string) string                  { return b.Text(selector) }
func (b chrome) await(script string)                          { b.Await(script) }
func (b chrome) size(width, height int64, scheme string)      { b.Size(width, height, scheme) }
func (b chrome) picture(name string)                          { b.Picture(name) }
func (b chrome) axe()                                         { b.Axe() }
func (b chrome) quiet(origin string)                          { b.Quiet(origin) }
