// Package zones holds time zones: which data they are taken from, and that data itself, of one release.
//
// A program of this module takes its own data unless it says otherwise (Use). refreshd takes the data of its host if that is newer, and always
// the data of ZONEINFO. All names come from one source: a name missing there is an alias of a known zone, or no zone.
package zones

import (
	"archive/zip"
	"bytes"
	"cmp"
	_ "embed" // of zones.zip
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Origin is which zone data something is computed by.
type Origin struct {
	Release string `json:"release"` // such as 2026f; empty: the source names none, and counts as older than any
	Source  string `json:"source"`  // for people: SourceOwn, or the path of a directory or of an archive
}

// Data is the zone data of one source. It is safe for concurrent use.
type Data struct {
	Origin
	files  fs.FS
	links  map[string]string // name to the name of its zone
	count  atomic.Int64      // of loaded
	loaded sync.Map          // name to *time.Location; only names that exist get in, so it is bounded
}

// SourceOwn is the source of the data that this module brings.
const SourceOwn = "refreshd"

// Open reads which release a source is of, and its links: in tzdata.zi, as Debian and others install it, or in +VERSION. files holds a file in the
// format of RFC 9636 for each zone, such as Europe/Berlin.
func Open(files fs.FS, source string) *Data {
	d := &Data{Origin: Origin{Source: source}, files: files, links: map[string]string{}}
	text, _ := fs.ReadFile(files, "tzdata.zi") // a source need not have it
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "L" {
			d.links[fields[2]] = fields[1]
		}
	}
	version, _ := fs.ReadFile(files, "+VERSION") // likewise
	if found := releasePattern.FindSubmatch(slices.Concat(text[:bytes.IndexByte(text, '\n')+1], version)); found != nil {
		d.Release = string(found[1])
	}
	return d
}

var releasePattern = regexp.MustCompile(`^(?:# version )?(\d{4}[a-z]\S*)\n?`)

//go:embed zones.zip
var archive string

// Own is the data that this module brings. build.sh makes it of the tzdata of Debian.
var Own = sync.OnceValue(func() *Data {
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(err) // the compiled-in data, which is tested
	}
	return Open(files, SourceOwn)
})

var inUse atomic.Pointer[Data]

// InUse is the data that this program takes all zones from.
func InUse() *Data {
	if d := inUse.Load(); d != nil {
		return d
	}
	return Own()
}

// Use has the program take all zones from other data. Call it before any schedule is compiled: compiled schedules do not change.
func Use(d *Data) { inUse.Store(d) }

// NewerThan reports whether the data is of a later release than another one. One that nobody knows (empty) is older than any.
func (o Origin) NewerThan(release string) bool { return o.Release > release }

// String names release and source, such as "2026f of refreshd".
func (o Origin) String() string {
	if o == (Origin{}) {
		return "an unknown release"
	}
	return o.named() + of + o.Source
}

const of = " of "

func (o Origin) named() string { return cmp.Or(o.Release, noRelease) }

// Load returns the zone of a name. A name that this data does not have is looked up among the links of it and of the data that this module brings, the newer
// first, for another name of the same zone. It knows neither "" nor Local.
func (d *Data) Load(name string) (*time.Location, error) {
	if zone, ok := d.loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	for _, known := range append([]string{name}, d.otherNames(name)...) {
		content, _ := fs.ReadFile(d.files, known) // nothing is no zone either
		if zone, err := time.LoadLocationFromTZData(strings.Clone(name), content); err == nil {
			d.loaded.Store(strings.Clone(name), zone)
			d.count.Add(1)
			return zone, nil
		}
	}
	return nil, fmt.Errorf("expected a zone of %s, found %q", d.Origin, name)
}

// Loaded is how many names were loaded so far, or a little more.
func (d *Data) Loaded() int64 { return d.count.Load() }

// otherNames are the other names of a zone, the name that stores it first.
func (d *Data) otherNames(name string) (names []string) {
	links := d.links
	if own := Own(); own.NewerThan(d.Release) {
		links = own.links
	}
	stored := name
	for range len(links) { // a circle ends
		stored = cmp.Or(links[stored], stored)
	}
	for other, target := range links {
		if target == stored {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	return append([]string{stored}, names...)
}
