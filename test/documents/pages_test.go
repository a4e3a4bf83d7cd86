package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func pages(t testing.TB) []string {
	t.Helper()
	found := check.Got(filepath.Glob(filepath.Join(root, "docs", "*.md")))(t)
	pages := []string{"README.md"}
	for _, path := range found {
		pages = append(pages, "docs/"+filepath.Base(path))
	}
	return pages
}

var shells = []string{"sh", "bash", "shell", "console", "zsh"}

// command is how a block of commands begins, fenced or not.
var command = regexp.MustCompile(`^(\$ |\./|(sudo|go|git|make|docker|kubectl|apt|apt-get|npm|pip|curl|cat|export|refreshd|redis-cli|systemctl|[A-Z_]+=\S+) )`)

// commands are the command blocks of a page. What looks like one and is not marked as one is an error.
func commands(t testing.TB, page string) (found []*block) {
	t.Helper()
	_, blocks := read(t, page)
	for _, b := range blocks {
		switch {
		case slices.Contains(shells, b.fence), strings.HasPrefix(b.marker, markFile):
			found = append(found, b)
		case b.fence == "" && len(b.lines) > 0 && command.MatchString(b.lines[0]):
			t.Errorf("%s line %d: expected ```sh above commands, so that they are run, found a block without it", page, b.line)
		}
	}
	return found
}

// fleet is the subject of the page of the fleet: a model that fails.
func fleet(t *testing.T, server *testkit.Server) {
	t.Helper()
	q := fixture.Live(t, server)
	d := check.Got(dispatcher.New(dispatcher.RoomsOf(q.Store), dispatcher.Config{}))(t)
	p := check.Got(poller.New(poller.RoomsOf(q.Store), poller.Config{}))(t)
	work := func() {
		check.Got(p.RunOnce(t.Context()))(t)
		check.Got(d.RunOnce(t.Context()))(t)
	}
	q.Command(`{"type":"put","uid":"tbl_1","payload":{"input_url":"https://down.example/feed.csv"},"labels":{"tenant":"t1"},"policy":{"retries":["1h"],"fresh_within":"26h"}}`)
	work()
	q.Say(fixture.Result("failure", "tbl_1", q.Attempt("tbl_1"), `"reason":"GET https://down.example/feed.csv: 503 Service Unavailable"`, `"error_type":"http_503"`))
	work()
	testkit.Refreshd(t, "poller", "--redis", server.URL)
}

func TestEveryCommandBlockOfAPageRuns(t *testing.T) {
	for _, page := range pages(t) {
		found := slices.DeleteFunc(commands(t, page), func(b *block) bool {
			return strings.HasPrefix(b.marker, markNotRun) || b.marker == markLong && !long.Enabled()
		})
		if len(found) == 0 || page == cookbook || page == firstWorker {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			if page != "README.md" { // which most people begin with
				long.Only(t)
			}
			s := newSession(t, page)
			if page == "docs/fleet.md" {
				fleet(t, s.server)
			}
			s.add(found...)
			if page == "README.md" && long.Enabled() {
				s.script.WriteString(installed)
			}
			s.run()
		})
	}
}

// installed fails unless the commands before it were those that README.md installs.
const installed = `test "$(command -v refreshd)" = "$HOME/.local/bin/refreshd"
test "$(PYTHONPATH= python3 -c 'import refreshd; print(refreshd.__file__)')" = "$(ls "$PWD"/env/lib/python3*/site-packages/refreshd.py)"
`

// maxNotRun bounds the command blocks that no test runs.
const maxNotRun = 30

func TestFewCommandBlocksAreNotRunAndEachSaysWhy(t *testing.T) {
	run, notRun := 0, 0
	for _, page := range pages(t) {
		for _, b := range commands(t, page) {
			reason, is := strings.CutPrefix(b.marker, markNotRun)
			if run++; is {
				run, notRun = run-1, notRun+1
			}
			known := slices.Contains([]string{"", markLong, markGoesOn}, b.marker) || strings.HasPrefix(b.marker, markFile) || strings.HasPrefix(b.marker, markUntil)
			if is && len(strings.Fields(reason)) < 2 || !is && !known {
				t.Errorf("%s line %d: expected %q, %q, %q, %q or %q, found %q", page, b.line, markNotRun+"why", markLong, markGoesOn, markFile+"name", markUntil+"text", b.marker)
			}
		}
	}
	if run < 40 || notRun > maxNotRun {
		t.Errorf("want the command blocks of all pages run, and at most %d that are not, got %d and %d", maxNotRun, run, notRun)
	}
}

// measured are the numbers that README.md takes from docs/performance.md, which make bench writes anew.
var measured = regexp.MustCompile(`\b\d{1,2},\d{3}\b|\b\d+\.\d µs|\b\d+ to \d+ bytes`)

func TestTheFirstScreensAreShortAndTheirNumbersAreThoseOfTheMeasurement(t *testing.T) {
	lines, _ := read(t, "README.md")
	if len(lines) > 200 {
		t.Errorf("README.md: want at most 200 lines, got %d", len(lines))
	}
	text := strings.Join(lines, "\n")
	_, text, _ = strings.Cut(text, "\n## Measured\n")
	text, _, _ = strings.Cut(text, "\n## ")
	page, _ := read(t, "docs/performance.md")
	numbers := measured.FindAllString(text, -1)
	for _, number := range numbers {
		plain := strings.TrimSuffix(strings.ReplaceAll(number, ",", ""), " µs")
		if all := strings.ReplaceAll(strings.Join(page, "\n"), ",", ""); !strings.Contains(all, strings.TrimSuffix(plain, " bytes")) {
			t.Errorf("README.md: %s: expected a number of docs/performance.md", number)
		}
	}
	if len(numbers) < 5 {
		t.Errorf("want the numbers of README.md checked, got %v", numbers)
	}
}

var (
	link   = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"`)
	anchor = regexp.MustCompile(`<a id="([^"]+)"`)
	code   = regexp.MustCompile("`[^`]*`")
	// dropped are the characters that a forge leaves out of the anchor of a heading.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the targets of links within a page.
func anchors(t testing.TB, page string) map[string]bool {
	t.Helper()
	lines, blocks := read(t, page)
	within := inBlocks(blocks)
	found, times := map[string]bool{}, map[string]int{}
	for i, line := range lines {
		if within[i+1] {
			continue
		}
		for _, named := range anchor.FindAllStringSubmatch(line, -1) {
			found[named[1]] = true
		}
		if strings.HasPrefix(line, "#") {
			title := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.TrimSpace(strings.TrimLeft(line, "#")), "")
			name := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
			if times[name]++; times[name] > 1 {
				name = fmt.Sprint(name, "-", times[name]-1)
			}
			found[name] = true
		}
	}
	return found
}

// inBlocks are the lines in blocks, from 1.
func inBlocks(blocks []*block) map[int]bool {
	within := map[int]bool{}
	for _, b := range blocks {
		for i := range b.lines {
			within[b.line+i] = true
		}
	}
	return within
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		lines, blocks := read(t, page)
		within := inBlocks(blocks)
		for i, line := range lines {
			if within[i+1] {
				continue
			}
			for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(line, "``"), -1) {
				target := found[1] + found[2]
				if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
					continue
				}
				links++
				path, fragment, _ := strings.Cut(target, "#")
				to := page
				if path != "" {
					to = filepath.Join(filepath.Dir(page), path)
				}
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s line %d: %s: no such file", page, i+1, target)
				} else if fragment != "" && strings.HasSuffix(to, ".md") && !anchors(t, to)[fragment] {
					t.Errorf("%s line %d: %s: no such heading", page, i+1, target)
				}
			}
		}
	}
	if links < 50 {
		t.Errorf("want the links of the pages checked, got %d", links)
	}
}
