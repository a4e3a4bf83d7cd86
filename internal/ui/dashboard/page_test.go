package dashboard

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// everyPage are addresses of all pages, of the demo.
var everyPage = []string{
	"", "?period=24h", "plan", "models?sort=failing", "models?l=timed+out", "models/all?do=hold", "models/all?l=status%3Dfailing&do=run",
	"journal?kind=all", "audit", "model?uid=umbrella%2Fproducts-de", "failures", "running", "running?name=host7", "steering", "rejected", "policies", "policy?name=hourly-feeds",
	"playground?example=yaml", "model?uid=nobody", "policy/edit?name=hourly-feeds&was=&text=timeout:+7m", "model/edit?uid=umbrella%2Fproducts-de&was=&text=payload:+%5B1%5D",
	"models/selected?do=disable&uid=acme%2Fstock",
}

// TestEveryPageIsAccessibleInLightAndDarkOnADeskAndOnAPhone looks at each page in four ways; -screenshots writes what it saw, for people to look at.
func TestEveryPageIsAccessibleInLightAndDarkOnADeskAndOnAPhone(t *testing.T) {
	if *screenshots == "" {
		long.Only(t)
	}
	t.Parallel()
	f := newFleet(t, Config{})
	tab := browser.Open(t)
	f.demo()
	for _, path := range everyPage {
		for _, width := range []int64{1400, 390} {
			tab.Size(width, 900)
			tab.Light()
			tab.Go(f.url(path))
			for _, dark := range []bool{false, true} {
				if dark {
					tab.Dark()
				}
				tab.Await("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
				shoot(t, tab, path, width, dark)
				browser.Eval[int](tab, "[...document.querySelectorAll('details')].map(d => d.open = true).length")
				accessible(t, tab)
				fits(t, tab)
			}
		}
		cut := browser.Eval[string](tab, "[...document.querySelectorAll('header a, header button')].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.textContent).join()")
		failIf(t, cut != "", "%q: expected the whole menu on a phone, found %s cut off", path, cut)
		unseen := browser.Eval[string](tab, "[...document.querySelectorAll('.scroll:not(.long) td')].filter(e => e.textContent && (e.getBoundingClientRect().right > innerWidth || e.dataset.label !== e.closest('table').tHead.rows[0].cells[e.cellIndex].textContent.trim())).map(e => e.textContent).join()")
		failIf(t, unseen != "", "%q: expected each cell on a phone, beside the name of its column, found %s without", path, unseen)
		hidden := browser.Eval[int](tab, "[...document.querySelectorAll('.long')].filter(e => e.firstElementChild.getBoundingClientRect().top < e.getBoundingClientRect().top).length")
		failIf(t, hidden != 0, "%q: expected each long box at its top", path)
	}
}

// shoot writes the page as it is seen, if somebody wants the pictures. A page of one colour fails.
func shoot(t *testing.T, tab *browser.Tab, path string, width int64, dark bool) {
	t.Helper()
	shot := pictureOf(t, tab, 4000)
	picture := check.Got(png.Decode(bytes.NewReader(shot)))(t)
	failIf(t, coloursOf(picture) < 5, "%q: expected a page of some colours, found an empty one", path)
	if *screenshots == "" {
		return
	}
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	name := fmt.Sprintf("%s-%d-%s.png", strings.Trim(notOfName.ReplaceAllString(cmp.Or(path, "overview"), "-"), "-"), width, scheme)
	must(t, os.WriteFile(filepath.Join(*screenshots, name), shot, 0o644))
}

var notOfName = regexp.MustCompile(`[^a-z0-9]+`)

// coloursOf is how many colours there are below the header, on each tenth line.
func coloursOf(picture image.Image) int {
	colours := map[color.Color]bool{}
	for y := 100; y < picture.Bounds().Dy(); y += 10 {
		for x := range picture.Bounds().Dx() {
			colours[picture.At(x, y)] = true
		}
	}
	return len(colours)
}

func TestEveryPageIsListedHere(t *testing.T) {
	seen := map[string]bool{}
	for _, address := range everyPage {
		path, _, _ := strings.Cut(address, "?")
		seen[path] = true
	}
	for _, page := range pages {
		failIf(t, !seen[page.path], "expected the page %q among those that are looked at", page.path)
	}
}

var (
	update      = flag.Bool("update", false, "write docs/screenshots/model.png")
	screenshots = flag.String("screenshots", "", "write a picture of each page into this folder")
)

const largestPicture = 150 << 10

// TestThePictureOfTheDocumentsCanBeTaken takes the picture that the documents show, of a page as it is; -update writes it.
func TestThePictureOfTheDocumentsCanBeTaken(t *testing.T) {
	if !*update {
		long.Only(t)
	}
	f := newFleet(t, Config{})
	tab := browser.Open(t)
	f.demo()
	tab.Size(1280, 800)
	tab.Go(f.url("model?uid=umbrella%2Fproducts-de"))
	tab.Await("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
	taken := check.Got(shrink(pictureOf(t, tab, 1700)))(t)
	colours := coloursOf(check.Got(png.Decode(bytes.NewReader(taken)))(t))
	failIf(t, colours < 5 || len(taken) > largestPicture,
		"expected a picture of some colours and at most %d KiB, found %d colours and %d KiB", largestPicture>>10, colours, len(taken)>>10)
	if *update {
		must(t, os.WriteFile("../../../docs/screenshots/model.png", taken, 0o644))
	}
}

// shrink keeps the colours of a picture that are most frequent, and makes the others the nearest of them: pages have few.
func shrink(shot []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, fmt.Errorf("read a picture: %w", err)
	}
	bounds, counts := from.Bounds(), map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[from.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	to := image.NewPaletted(bounds, colours[:min(len(colours), 160)])
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, to); err != nil {
		return nil, fmt.Errorf("write a picture: %w", err)
	}
	return out.Bytes(), nil
}

func TestAQueueIsChosenByItsLink(t *testing.T) {
	long.Only(t)
	t.Parallel()
	f := newFleet(t, Config{})
	showToo(t, f.dashboard, f.client, store.Config{Queue: "banners", Clock: f.Clock.Now})
	tab := browser.Open(t)
	check.Eventually(t, "two queues", func() bool { return len(f.dashboard.sites.all()) == 2 })
	tab.Go(f.url("models"))
	look(t, tab)
	tab.Follow("banners")
	tab.Await("location.pathname === '/q/banners/'")
	look(t, tab)
	tab.Follow("Models")
	tab.Await("location.pathname === '/q/banners/models'")
}
