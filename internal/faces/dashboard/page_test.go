package dashboard

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	for _, path := range everyPage {
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

var update = flag.Bool("update", false, "write the pictures of docs/screenshots")

const largestPicture = 150 << 10

// TestEachPictureOfTheDocumentsCanBeTaken takes the pictures that the documents show, of pages as they are; -update writes them.
func TestEachPictureOfTheDocumentsCanBeTaken(t *testing.T) {
	if !*update {
		long.Only(t)
	}
	f := newFleet(t, Config{})
	tab := browser.Open(t)
	f.demo()
	for _, shot := range []struct {
		name, path  string
		dark, phone bool
		height      int64
	}{
		{name: "overview", path: "", height: 900},
		{name: "overview-dark", path: "", dark: true, height: 900},
		{name: "models", path: "models?sort=failing", height: 900},
		{name: "model", path: "model?uid=umbrella%2Fproducts-de", height: 1700},
		{name: "failures", path: "failures", height: 900},
		{name: "steering", path: "steering", height: 1000},
		{name: "rejected", path: "rejected", height: 900},
		{name: "policies", path: "policies", height: 800},
		{name: "playground", path: "playground", height: 900},
		{name: "phone", path: "failures", phone: true, height: 760},
	} {
		tab.Size(1280, 800)
		if shot.phone {
			tab.Phone()
		}
		tab.Light()
		if shot.dark {
			tab.Dark()
		}
		tab.Go(f.url(shot.path))
		tab.Await("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
		taken := tab.Picture(shot.height)
		picture, err := png.Decode(bytes.NewReader(taken))
		if err != nil {
			t.Fatal(err)
		}
		colours := map[any]bool{}
		for x := range picture.Bounds().Dx() {
			colours[picture.At(x, picture.Bounds().Dy()/2)] = true
			colours[picture.At(x, 30)] = true
		}
		if len(colours) < 5 || len(taken) > largestPicture {
			t.Errorf("%s: expected a picture of some colours and at most %d KiB, found %d colours and %d KiB", shot.name, largestPicture>>10, len(colours), len(taken)>>10)
		}
		if *update {
			if err := os.WriteFile(filepath.Join("../../../docs/screenshots", shot.name+".png"), taken, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
