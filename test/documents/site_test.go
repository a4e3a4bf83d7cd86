package documents

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/browser"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// listed is a line of docs/README.md that names a page. deploy/site/navigation.py reads the same.
var listed = regexp.MustCompile(`(?m)^\* \[.+?\]\(([\w-]+\.md)\)`)

func TestTheListOfPagesHasEachPageOnce(t *testing.T) {
	text := check.Got(os.ReadFile(filepath.Join(root, "docs", "README.md")))(t)
	times := map[string]int{"README.md": 1}
	for _, entry := range listed.FindAllStringSubmatch(string(text), -1) {
		times[entry[1]]++
	}
	for _, page := range pages(t) {
		if name := filepath.Base(page); times[name] != 1 {
			t.Errorf("docs/README.md: expected one line that begins with * [Title](%s), found %d", name, times[name])
		}
	}
}

var (
	identifier = regexp.MustCompile(`\bid="([^"]+)"`)
	reference  = regexp.MustCompile(`\bhref="([^":#]*)(?:#([^"]+))?"`)
	// flowed is a list or a table that the site has made a part of the paragraph above, as there is no empty line between; a forge does not.
	flowed = regexp.MustCompile(`(?m)<p>(?:[^<]|</?(?:a|code|em|strong)\b)*?\n(?:(?:\*|-|\d+\.) .*|\|.*\|)$`)
)

// TestTheSiteFindsAPageByAWordAndOpensIt builds the site, where a link to no page fails, and looks a word up with a browser, which asks no other host.
func TestTheSiteFindsAPageByAWordAndOpensIt(t *testing.T) {
	long.Only(t)
	testkit.RequireProgram(t, "mkdocs", "mkdocs mkdocs-material")
	site := filepath.Join(t.TempDir(), "site")
	if out, err := exec.Command(filepath.Join(root, "deploy/site/build.sh"), site).CombinedOutput(); err != nil {
		t.Fatalf("build the site: %v\n%s", err, out)
	}
	playground := filepath.Join(site, "playground", "index.html") // which another test builds
	check.Must(t, os.MkdirAll(filepath.Dir(playground), 0o750))
	check.Must(t, os.WriteFile(playground, nil, 0o600))
	for _, place := range astray(t, site) {
		t.Error(place)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(site)))
	t.Cleanup(server.Close)
	tab := browser.Open(t)
	tab.Go(server.URL)
	tab.Press("input[name=query]")
	tab.Fill("query", "backoff")
	tab.Await("document.querySelector('.md-search-result__link')")
	tab.Follow(".md-search-result__link")
	tab.Await("location.pathname.startsWith('/docs/')")
	tab.AwaitText("backoff")
}

// page is a page of the site.
type page struct {
	text     string
	headings map[string]bool
}

func readSite(t *testing.T, site string) map[string]page {
	t.Helper()
	pages := map[string]page{}
	for _, pattern := range []string{"index.html", "docs/*.html", "examples/*/*.html"} {
		for _, path := range check.Got(filepath.Glob(filepath.Join(site, pattern)))(t) {
			p := page{string(check.Got(os.ReadFile(path))(t)), map[string]bool{}}
			for _, found := range identifier.FindAllStringSubmatch(p.text, -1) {
				p.headings[found[1]] = true
			}
			pages[path] = p
		}
	}
	return pages
}

// astray are the links of the site that lead nowhere, and the lists and tables that a reader would find in a paragraph.
func astray(t *testing.T, site string) (places []string) {
	t.Helper()
	pages := readSite(t, site)
	for path, p := range pages {
		name := strings.TrimPrefix(path, site)
		if found := flowed.FindString(p.text); found != "" {
			places = append(places, name+": expected an empty line above: "+found[strings.LastIndex(found, "\n")+1:])
		}
		for _, link := range reference.FindAllStringSubmatch(p.text, -1) {
			to := path
			if link[1] != "" {
				to = filepath.Join(filepath.Dir(path), link[1])
			}
			if info, err := os.Stat(to); err != nil || info.IsDir() {
				places = append(places, name+": "+link[0]+": expected a file")
			} else if at, is := pages[to]; is && link[2] != "" && !at.headings[link[2]] {
				places = append(places, name+": "+link[0]+": no such heading")
			}
		}
	}
	return places
}
