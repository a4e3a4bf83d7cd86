package browser

import (
	"context"
	_ "embed" // axe-core
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// Accessible fails the test with what axe-core finds in the page.
func (tab *Tab) Accessible() {
	tab.t.Helper()
	if !Eval[bool](tab, "typeof axe === 'object'") {
		Eval[bool](tab, axe+"\n;true")
	}
	found := Eval[[]string](tab, `axe.run({resultTypes: ['violations']}).then(r => r.violations.flatMap(v => v.nodes.map(n =>
		v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\s+/g, ' ') + ' in ' + n.html)))`, chromedp.EvalAwaitPromise)
	if len(found) > 0 {
		tab.t.Errorf("%s: axe-core finds\n%s", tab.Address(), strings.Join(found, "\n"))
	}
}

// Fits fails the test when the page scrolls sideways.
func (tab *Tab) Fits() {
	tab.t.Helper()
	if wide := Eval[string](tab, `((most) => document.documentElement.scrollWidth <= most ? '' : [...document.body.querySelectorAll('*')].filter(e =>
		e.getBoundingClientRect().right > most).slice(0, 5).map(e => e.outerHTML.slice(0, 100)).join('\n') || 'something')(document.documentElement.clientWidth)`); wide != "" {
		tab.t.Errorf("%s scrolls sideways, by\n%s", tab.Address(), wide)
	}
}

// Look fails the test with what is wrong with how the page looks: in light colours on a desk, and in dark ones on a phone. The window is 1280 by 800 after
// it, and light.
func (tab *Tab) Look() {
	tab.t.Helper()
	tab.Accessible()
	tab.Fits()
	tab.Dark()
	tab.Phone()
	tab.Accessible()
	tab.Fits()
	tab.Light()
	tab.Size(1280, 800)
}

// Picture is a PNG of the page down to a height in CSS pixels.
func (tab *Tab) Picture(height int64) []byte {
	tab.t.Helper()
	width := Eval[int64](tab, "innerWidth")
	tab.Size(width, min(height, Eval[int64](tab, "document.documentElement.scrollHeight")))
	shot, err := chromedp.Run(tab.ctx, chromedp.Action[[]byte](func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		return r.Data, err
	}))
	if err != nil {
		tab.t.Fatal(fmt.Errorf("take a picture: %w", err))
	}
	return shot
}
