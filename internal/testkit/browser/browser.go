// Package browser looks at pages with Chromium, as a person would. A package of tests has one browser, which its first tab starts and testkit.Main
// ends; each tab has cookies of its own. Only tests import it.
package browser

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refreshd/refreshd/internal/testkit"
)

const program = "chromium"

// start starts the browser of this process, at the first tab.
var start = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoFirstRun,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-extensions", true),
		// A tab behind others is as quick as the one in front.
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-default-apps", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-GB"))
	ctx, cancel := chromedp.NewContext(allocator)
	testkit.AtEnd(func() { // end waits for the process
		cancel()
		end()
	})
	return ctx, chromedp.Do(ctx)
})

// open is a new tab of the browser, closed when the test ends, and how long it may wait for anything.
func open(t testing.TB, listen func(event any)) (ctx, waits context.Context) {
	t.Helper()
	testkit.RequireProgram(t, program, program)
	browser, err := start()
	if err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(listen))
	t.Cleanup(closeTab)
	ctx, cancel := context.WithTimeout(ctx, testkit.Limit)
	t.Cleanup(cancel)
	waits, cancel = context.WithTimeout(ctx, testkit.Limit-testkit.Limit/10)
	t.Cleanup(cancel)
	return ctx, waits
}
