// Package browser looks at pages with Chromium, as a person would. A package of tests has one browser, which its first tab starts and testkit.Main
// ends; each tab has cookies of its own. Only tests import it.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// Tab is one tab of the browser. A test fails when its pages run a script that calls pwned, open a dialog, violate their Content-Security-Policy, throw, or
// ask another host for anything.
type Tab struct {
	t   testing.TB
	ctx context.Context
	bad bool // its pages are known to misbehave

	mu     sync.Mutex
	faults []string // guarded by mu
}

// Hook is called by the script of an attack: a tab notices.
const Hook = "pwned"

// watch runs before the scripts of each page.
const watch = `alert = confirm = prompt = text => ` + Hook + `('dialog: ' + text)
	addEventListener('securitypolicyviolation', e => ` + Hook + `('violation of ' + e.violatedDirective + ': ' + e.blockedURI + ' ' + e.sample + ' at ' + e.sourceFile))`

// Open opens an empty tab of 1280 by 800, in light colours.
func Open(t testing.TB) *Tab {
	t.Helper()
	tab := &Tab{t: t}
	testkit.RequireProgram(t, program, program)
	browser, err := start()
	if err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	// A tab of the browser, closed when the test ends, and how long a test of many pages may take.
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.listen))
	t.Cleanup(closeTab)
	var cancel context.CancelFunc
	tab.ctx, cancel = context.WithTimeout(ctx, 3*check.Limit)
	t.Cleanup(cancel)
	tab.do(
		call(runtime.AddBinding, runtime.AddBindingParams{Name: Hook}),
		call(log.Enable, cdp.Empty{}),
		call(network.Enable, network.EnableParams{}),
		call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
			return err
		}))
	tab.Size(1280, 800)
	tab.Light()
	t.Cleanup(func() {
		if faults := tab.Faults(); len(faults) > 0 && !tab.bad {
			t.Error("the browser: " + strings.Join(faults, "\n"))
		}
	})
	return tab
}

func call[P any](command cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// listen notes the faults of a page.
func (tab *Tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		tab.note(e.Payload)
	case *runtime.EventExceptionThrown:
		tab.note("exception: " + (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "the server responded with a status") {
			tab.note(fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; strings.HasPrefix(url, "http") && !strings.HasPrefix(url, "http://127.0.0.1:") {
			tab.note("asked another host: " + url)
		}
	}
}

func (tab *Tab) note(fault string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.faults = append(tab.faults, fault)
}

// Faults are the faults of its pages until now; it forgets them.
func (tab *Tab) Faults() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	faults := tab.faults
	tab.faults = nil
	return slices.Compact(faults)
}

func (tab *Tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	if err := chromedp.Do(tab.ctx, actions...); err != nil {
		tab.t.Fatalf("the browser: %v", err)
	}
}

// Go loads a page, and waits for it as leave does: chromedp.Navigate waits for an event, and forever if that one does not come.
func (tab *Tab) Go(url string) {
	tab.t.Helper()
	tab.leave(func() {
		to, err := Do(tab, func(ctx context.Context, target *chromedp.Target) (page.NavigateResult, error) {
			return cdp.Call(ctx, target, page.Navigate, page.NavigateParams{URL: url})
		})
		if err != nil || to.ErrorText != "" {
			tab.t.Fatalf("the browser: load %s: %v %s", url, err, to.ErrorText)
		}
	})
}

// Leave closes the page, so that its server may end.
func (tab *Tab) Leave() { tab.t.Helper(); tab.Go("about:blank") }

// Size sets the size of the window in CSS pixels.
func (tab *Tab) Size(width, height int64) {
	tab.t.Helper()
	tab.do(chromedp.EmulateViewport(width, height))
}

// Phone makes the window as narrow as a small phone.
func (tab *Tab) Phone() { tab.t.Helper(); tab.Size(375, 720) }

// Light asks for light colours.
func (tab *Tab) Light() { tab.t.Helper(); tab.prefer("light") }

// Dark asks for dark colours.
func (tab *Tab) Dark() { tab.t.Helper(); tab.prefer("dark") }

func (tab *Tab) prefer(scheme string) {
	tab.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	tab.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}))
}

// Keys types, as if on a keyboard: "\t" is Tab, "\r" Enter.
func (tab *Tab) Keys(keys string) {
	tab.t.Helper()
	tab.do(chromedp.KeyEvent(keys))
}

// TabTo types Tab until the element with this text, this label or this id has the focus, and shows that it has.
func (tab *Tab) TabTo(name string) {
	tab.t.Helper()
	for range 200 {
		tab.Keys("\t")
		if !Eval[bool](tab, `((e, name) => [e.id, e.innerText?.trim(), e.getAttribute('aria-label')].includes(name))(document.activeElement, `+Quote(name)+")") {
			continue
		}
		if Eval[string](tab, "getComputedStyle(document.activeElement).outlineStyle") == "none" {
			tab.t.Errorf("the browser: %q has the focus, and nothing shows it", name)
		}
		return
	}
	tab.t.Fatalf("the browser: the key Tab does not reach %q in\n%s", name, tab.Text())
}

// Do runs actions without a method of their own.
func Do[T any](tab *Tab, action chromedp.Action[T]) (T, error) { return chromedp.Run(tab.ctx, action) }

// Eval evaluates an expression in the page.
func Eval[T any](tab *Tab, expression string, options ...chromedp.EvaluateOption) T {
	tab.t.Helper()
	value, err := Do(tab, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		tab.t.Fatalf("the browser: %s: %v", expression, err)
	}
	return value
}

// Text is the visible text of the page.
func (tab *Tab) Text() string { tab.t.Helper(); return Eval[string](tab, `document.body.innerText`) }

// Address is the address of the page.
func (tab *Tab) Address() string { tab.t.Helper(); return Eval[string](tab, `location.href`) }

// Await waits until an expression holds in the page, or in the one that comes behind it.
func (tab *Tab) Await(expression string) {
	tab.t.Helper()
	look := time.NewTicker(20 * time.Millisecond) // each look costs the page a layout
	defer look.Stop()
	waits, cancel := context.WithTimeout(tab.ctx, check.Limit/2)
	defer cancel()
	for {
		holds, err := chromedp.Run(waits, chromedp.Evaluate[bool]("!!("+expression+")")) // an error: one page goes, and the next comes
		if err == nil && holds {
			return
		}
		select {
		case <-look.C:
		case <-waits.Done():
			tab.t.Fatalf("the browser: never: %s; the page is\n%s\n%s", expression, tab.Address(), tab.Text())
		}
	}
}

// AwaitText waits until a reader of the page sees a text.
func (tab *Tab) AwaitText(text string) {
	tab.t.Helper()
	tab.Await("document.body.innerText.includes(" + Quote(text) + ")")
}

// Follow presses the link or button of that name, or that matches the CSS selector, and waits for the page behind it.
func (tab *Tab) Follow(name string) {
	tab.t.Helper()
	tab.leave(func() { tab.Press(name) })
}

// leave runs an action that loads another page, and waits for that.
func (tab *Tab) leave(do func()) {
	tab.t.Helper()
	Eval[bool](tab, "window.left = true")
	do()
	tab.Await("!window.left && document.readyState === 'complete'")
}

// KeysFollow types keys that load another page, and waits for that.
func (tab *Tab) KeysFollow(keys string) { tab.t.Helper(); tab.leave(func() { tab.Keys(keys) }) }

// Press presses the link or button of that name, or that matches the CSS selector.
func (tab *Tab) Press(name string) {
	tab.t.Helper()
	if !Eval[bool](tab, `((name) => {
		const named = [...document.querySelectorAll('a[href], button, summary, input[type=submit]')].find(e =>
			[e.innerText, e.value, e.getAttribute('aria-label')].some(text => text && text.trim() === name))
		let found = named
		if (!found) try { found = document.querySelector(name) } catch (e) {}
		if (!found) return false
		found.scrollIntoView()
		found.click()
		return true
	})(`+Quote(name)+`)`) {
		tab.t.Fatalf("the browser: no link or button %q in\n%s", name, tab.Text())
	}
}

// Fill sets the field of the page that has this id, or else the first of this name, as if somebody had typed.
func (tab *Tab) Fill(name, value string) {
	tab.t.Helper()
	if !Eval[bool](tab, `((name, value) => {
		const field = document.getElementById(name) || document.getElementsByName(name)[0]
		if (!field) return false
		field.value = value
		field.dispatchEvent(new Event('input', {bubbles: true}))
		return true
	})(`+Quote(name)+", "+Quote(value)+")") {
		tab.t.Fatalf("the browser: no field called %q in\n%s", name, tab.Text())
	}
}

// Quote is a text as JavaScript writes it.
func Quote(text string) string {
	quoted, _ := json.Marshal(text) // a text always marshals
	return string(quoted)
}

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
