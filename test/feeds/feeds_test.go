package feeds

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

var servers = slices.Concat(debianServers, caches, npmServers)

// TestFetchGetsWhatEachServerHas also writes the table of docs/feeds.md, on request.
func TestFetchGetsWhatEachServerHas(t *testing.T) {
	var mu sync.Mutex
	var rows []row // guarded by mu
	t.Cleanup(func() {
		if *update {
			slices.SortFunc(rows, func(a, b row) int { return slices.Compare(a.place[:], b.place[:]) })
			writeTable(t, rows)
		}
	})
	for number, s := range servers {
		for version, i := range s.installations() {
			t.Run(strings.ReplaceAll(s.name+" "+s.with, "`", ""), func(t *testing.T) {
				t.Parallel()
				if s.debian != "" {
					testkit.RequireProgram(t, s.program, s.debian)
				}
				r := observe(t, &s, i)
				r.place = [2]int{number, version}
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, r)
			})
		}
	}
}

// TestFetchUnpacksWhatApacheKeepsPacked is about a file that lies packed on the server, whose coding Apache calls by its old name for every client.
func TestFetchUnpacksWhatApacheKeepsPacked(t *testing.T) {
	t.Parallel()
	s := apache("", "AddEncoding x-gzip .gz")
	testkit.RequireProgram(t, s.program, s.debian)
	site := newSite(t)
	s.start(site, s.installations()[0])
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	check.Got(packer.Write(table(1)))(t)
	must(t, packer.Close())
	f := site.feed("feed.csv.gz")
	site.write(f.name, packed.Bytes(), written)
	f.fetch()
	failIf(t, !f.holds(table(1)), "want the feed unpacked, got another file")
}
