package schedule

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/zones"
)

// A wall clock is kept as "floating" seconds: its display, read as if it were UTC, in seconds since 1970. An
// instant is real seconds since 1970. Both are int64 and differ by the zone's offset.
const (
	hourSeconds = 3600
	daySeconds  = 86_400
)

type zone struct{ loc *time.Location }

// loadZone refuses names of "the zone of this machine": they mean something else on the next one.
func loadZone(name string) (zone, error) {
	if name == "" || name == "UTC" {
		return zone{time.UTC}, nil
	}
	found := ""
	if strings.EqualFold(name, "local") || name == "localtime" || name == "posixrules" {
		found = " (the zone of one machine)"
	} else if loc, err := zones.InUse().Load(name); err == nil {
		return zone{loc}, nil
	}
	return zone{}, &document.Error{Field: "timezone", Want: `an IANA time zone such as "Europe/Berlin"`, Found: document.Found(name) + found}
}

// Zone returns the zone of an IANA name, by the data in use; the empty name is UTC. It refuses all else with a *document.Error.
func Zone(name string) (*time.Location, error) {
	z, err := loadZone(name)
	return z.loc, err
}

var namedZone = regexp.MustCompile(`(?i)^(?:in |with )?(?:the )?time ?zone:? ([^\s)\],]+),|,? ?(?:[([]?(?:in |with )?(?:the )?time ?zone:? ([^\s)\],]+?)[)\].]*|[([]([a-z][\w+-]*/[\w+/-]*)[)\]]|in the ([a-z][\w+/-]*) time ?zone)$`)

// cutZone cuts out "in the time zone Europe/Berlin", "(Europe/Berlin)", "UTC", "Berlin time". One that is named as such need not exist.
func cutZone(sentence string) (rest, name string) {
	if found := namedZone.FindStringSubmatch(sentence); found != nil {
		return strings.Replace(sentence, found[0], "", 1), strings.Join(found[1:], "")
	}
	fields := strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(sentence))
	for length := maxCity; length > 0; length-- {
		for from := 0; from+length <= len(fields); from++ {
			to := from + length
			behind := to < len(fields) && strings.EqualFold(strings.Trim(fields[to], ",."), "time")
			before := from > 0 && strings.EqualFold(fields[from-1], "in")
			name := zoneOf(strings.Trim(strings.Join(fields[from:to], "_"), ",."), before || behind)
			if name == "" {
				continue
			}
			if before {
				from--
			}
			if behind {
				to++
			}
			rest = strings.Join(slices.Concat(fields[:from], fields[to:]), " ")
			if more, same := cutZone(rest); same == name { // "at 9:00 UTC and 21:00 UTC"
				rest = more
			}
			return rest, name
		}
	}
	return sentence, ""
}

const maxCity = 3

func zoneOf(text string, city bool) string {
	lower := strings.ToLower(text)
	switch {
	case lower == "utc", lower == "gmt":
		return "UTC"
	case strings.Contains(text, "/"):
		return existing(text)
	case !city || slices.ContainsFunc(noCities, func(word string) bool { return strings.Contains(lower, word) }):
		return ""
	}
	name := capitals.ReplaceAllStringFunc(lower, strings.ToUpper)
	name = strings.NewReplacer("_Of_", "_of_", "_Es_", "_es_").Replace(name)
	for _, region := range []string{"Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/"} {
		if name := existing(region + name); name != "" {
			return name
		}
	}
	return ""
}

var capitals = regexp.MustCompile(`(?:^|_)[a-z]`)

// noCities are in names of the zone database that mean something else in front of "time".
var noCities = strings.Fields("easter wake north south west victoria center")

func existing(name string) string {
	if _, err := loadZone(name); err != nil || strings.Contains(name, ".") {
		return ""
	}
	return name
}

// offset returns how far the clocks are ahead of UTC at an instant, in seconds. Everything here is built on it alone and not on
// time.Time.ZoneBounds, which is a day off at the end of leap years that the zone's data do not list (Go 1.26).
func (z zone) offset(at int64) int64 {
	if z.loc == time.UTC {
		return 0
	}
	_, offset := time.Unix(at, 0).In(z.loc).Zone()
	return int64(offset)
}

func (z zone) steps() int {
	if z.loc == time.UTC {
		return 1
	}
	return 5
}

// changed returns when, between from and to, the clocks got the offset that they have at to.
func (z zone) changed(from, to int64) int64 {
	old := z.offset(from)
	return firstThat(from, to, func(at int64) bool { return z.offset(at) != old })
}

// shownAt returns the wall times before and after a change of the clocks at an instant.
func (z zone) shownAt(change time.Time) (before, behind int64) {
	at := change.Unix()
	return at + z.offset(at-1), at + z.offset(at)
}

// firstThat returns the first number from which on something holds. It must not hold at from, and it must hold at to.
func firstThat(from, to int64, holds func(int64) bool) int64 {
	return from + 1 + int64(sort.Search(int(to-from-1), func(n int) bool { return holds(from + 1 + int64(n)) }))
}

// resolve returns the instant at which the clocks of the zone show wall. A wall time that occurs twice means the first. One that does not occur
// is read with the offset before the gap, so that 02:30 becomes 03:30; then gap is true and resume is the wall time at which the clocks went on.
func (z zone) resolve(wall int64) (at, resume int64, gap bool) {
	// No offset reaches a day, so a day either way is surely before and after. Clocks do not change twice in two days.
	before := z.offset(wall - daySeconds)
	if at = wall - before; z.offset(at) == before {
		return at, 0, false
	}
	later := z.offset(wall + daySeconds)
	if at = wall - later; z.offset(at) == later {
		return at, 0, false
	}
	return wall - before, z.changed(wall-daySeconds, wall+daySeconds) + later, true
}

// longestChange bounds how far the clocks of a zone were ever moved at once, in seconds: Apia, Kwajalein and Kiritimati skipped a whole day.
const longestChange = 25 * hourSeconds

// smallestChange divides all changes of clocks since 1972.
const smallestChange = 15 * 60

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }
