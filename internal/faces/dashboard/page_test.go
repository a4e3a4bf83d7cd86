package dashboard

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// everyPage are addresses of all pages, of the demo.
var everyPage = []string{
	"", "models?sort=failing", "model?uid=umbrella%2Fproducts-de", "failures", "steering", "rejected", "policies", "policy?name=hourly-feeds",
	"playground?example=yaml", "model?uid=nobody",
}

func TestEveryPageIsAccessibleInLightAndDarkAndOnAPhone(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	tab := browser.Open(t)
	f.demo()
	for _, path := range long.Or(everyPage[2:3], everyPage) {
		tab.Go(f.url(path))
		browser.Eval[int](tab, "[...document.querySelectorAll('details')].map(d => d.open = true).length")
		tab.Look()
		tab.Size(390, 800)
		tab.Fits()
		if cut := browser.Eval[string](tab, "[...document.querySelectorAll('header a, header button')].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.textContent).join()"); cut != "" {
			t.Errorf("%q: expected the whole menu on a phone, found %s cut off", path, cut)
		}
		if hidden := browser.Eval[int](tab, "[...document.querySelectorAll('.long')].filter(e => e.firstElementChild.getBoundingClientRect().top < e.getBoundingClientRect().top).length"); hidden != 0 {
			t.Errorf("%q: expected each long box at its top", path)
		}
		tab.Size(1280, 800)
	}
}

func TestAQueueIsChosenByItsLink(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	showToo(t, f.dashboard, f.client, store.Config{Queue: "banners", Clock: f.Clock.Now})
	tab := browser.Open(t)
	testkit.Eventually(t, "two queues", func() bool { return len(f.dashboard.sites.all()) == 2 })
	tab.Go(f.url("models"))
	tab.Look()
	tab.Follow("banners")
	tab.Await("location.pathname === '/q/banners/'")
	tab.Look()
	tab.Follow("Models")
	tab.Await("location.pathname === '/q/banners/models'")
}

func TestEveryPageIsListedHere(t *testing.T) {
	seen := map[string]bool{}
	for _, address := range everyPage {
		path, _, _ := strings.Cut(address, "?")
		seen[path] = true
	}
	for _, page := range pages {
		if !seen[page.path] {
			t.Errorf("expected the page %q among those that are looked at", page.path)
		}
	}
}
