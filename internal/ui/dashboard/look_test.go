package dashboard

import (
	"context"
	_ "embed" // axe-core
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/refreshd/refreshd/internal/testkit/browser"
)

//go:embed testdata/axe.min.js
var axe string

// accessible fails the test with what axe-core finds in the page.
func accessible(t *testing.T, tab *browser.Tab) {
	t.Helper()
	if !browser.Eval[bool](tab, "typeof axe === 'object'") {
		browser.Eval[bool](tab, axe+"\n;true")
	}
	found := browser.Eval[[]string](tab, `axe.run({resultTypes: ['violations']}).then(r => r.violations.flatMap(v => v.nodes.map(n =>
		v.id + ': ' + n.target.join(' ') + ': ' + n.failureSummary.replace(/\s+/g, ' ') + ' in ' + n.html)))`, chromedp.EvalAwaitPromise)
	failIf(t, len(found) > 0, "%s: axe-core finds\n%s", tab.Address(), strings.Join(found, "\n"))
}

func fits(t *testing.T, tab *browser.Tab) {
	t.Helper()
	if wide := browser.Eval[string](tab, `((most) => document.documentElement.scrollWidth <= most ? '' : [...document.body.querySelectorAll('*')].filter(e =>
		e.getBoundingClientRect().right > most).slice(0, 5).map(e => e.outerHTML.slice(0, 100)).join('\n') || 'something')(document.documentElement.clientWidth)`); wide != "" {
		t.Errorf("%s scrolls sideways, by\n%s", tab.Address(), wide)
	}
}

// look fails the test with what is wrong with how the page looks: in light colours on a desk, and in dark ones on a phone. The window is 1280 by 800 after
// it, and light.
func look(t *testing.T, tab *browser.Tab) {
	t.Helper()
	accessible(t, tab)
	fits(t, tab)
	tab.Dark()
	tab.Phone()
	accessible(t, tab)
	fits(t, tab)
	tab.Light()
	tab.Size(1280, 800)
}

// pictureOf is a PNG of the page down to a height in CSS pixels.
func pictureOf(t *testing.T, tab *browser.Tab, height int64) []byte {
	t.Helper()
	width := browser.Eval[int64](tab, "innerWidth")
	tab.Size(width, min(height, browser.Eval[int64](tab, "document.documentElement.scrollHeight")))
	shot, err := browser.Do(tab, chromedp.Action[[]byte](func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, target, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng})
		return r.Data, err
	}))
	stopIf(t, err != nil, "%v", fmt.Errorf("take a picture: %w", err))
	return shot
}
