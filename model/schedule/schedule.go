// Package schedule says when a model is refreshed as planned: RRULE sets, cron expressions and English, on the wall clock of a
// zone. A Schedule is asked for its next occurrence after an instant; time is always an argument.
package schedule

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// Schedule says when a model is refreshed as planned. It is immutable and safe for concurrent use.
type Schedule struct {
	zone   zone
	rules  []*recurrence // the cheapest first
	dates  []int64       // RDATE: instants in rising order, in seconds since 1970
	except []int64       // EXDATE: likewise
}

// Parse compiles a rule.
//
// rule holds one or more lines: RRULE ("RRULE:FREQ=DAILY;BYHOUR=6,16", where "RRULE:" may be left out), RDATE and EXDATE
// ("RDATE:20260101T090000,20260102T090000Z"). The schedule is the union of all RRULE and RDATE lines without the instants
// of the EXDATE lines. At most 4096 bytes of ASCII in 64 lines, 8 of them RRULE; case does not matter.
//
// timezone is an IANA name, empty for UTC. dtstart is the wall clock there which the rule counts from: "2006-01-02T15:04:05"
// or "2006-01-02", from 1970 to 2200. It is an occurrence only if the rule says so. A part that the rule leaves open (the
// minute of a daily rule) comes from dtstart.
//
// Times without Z, in RDATE, EXDATE and UNTIL too, are wall clock in timezone. A named hour that clocks skip runs at the offset before the gap
// (02:30 becomes 03:30); one that occurs twice runs once, at the first. The hour of a rule finer than a day with BY parts but without BYHOUR is
// free: it runs at every instant whose clock shows what they name, in both of two equal hours, never in a gap. Its INTERVAL, and a rule finer
// than a day without BY parts, are elapsed time from dtstart; beside BYHOUR an INTERVAL counts on the wall clock. UNTIL is inclusive; COUNT counts
// distinct instants, before EXDATE. Every schedule ends at the year 2300.
//
// A rule that cannot be read, that never occurs, or that takes too many steps to evaluate is refused with a *document.Error. One
// that is over is fine.
func Parse(rule, timezone, dtstart string) (*Schedule, error) {
	z, err := loadZone(timezone)
	if err != nil {
		return nil, err
	}
	start, err := parseDtstart(dtstart)
	if err != nil {
		return nil, err
	}
	set, err := readRuleSet(rule, z)
	if err != nil {
		return nil, err
	}
	b := budget(maxAdmission)
	return compile(set, z, start, &b)
}

func compile(set *ruleSet, z zone, dtstart int64, b *budget) (*Schedule, error) {
	s, cost := &Schedule{zone: z, dates: sorted(set.dates)}, 0
	var costs []int
	for _, line := range set.rules {
		rule, err := newRecurrence(line, z, dtstart, b)
		if err == nil {
			err = set.exclude(rule)
		}
		if err != nil {
			return nil, err
		}
		dearest, found := probe(rule, b)
		if cost += dearest; b.cut() || cost > maxCost {
			found := "more: parts that seldom meet, a large COUNT, or BYSETPOS in several lines"
			return nil, line.refuse("", wantSteps(maxCost), found)
		}
		if !found {
			return nil, line.refuse("", "a rule that occurs at least once, from dtstart to the year 2299", "one that never does")
		}
		i, _ := slices.BinarySearch(costs, dearest)
		s.rules, costs = slices.Insert(s.rules, i, rule), slices.Insert(costs, i, dearest)
	}
	s.except = sorted(set.except)
	if _, ok := s.next(-endless, b); b.cut() {
		return nil, refuseRule(wantSteps(maxCost), "more to the first one that is not excluded")
	} else if !ok {
		return nil, refuseRule("at least one occurrence", "EXDATE for each")
	}
	return s, nil
}

func sorted(instants []int64) []int64 {
	slices.Sort(instants)
	return slices.Compact(instants)
}

// Next returns the first occurrence strictly after an instant, in UTC, on a whole second. ok is false when none is left.
//
// It costs less than a microsecond for rules in use, whatever the age of the schedule. It never says in error that a schedule
// is over: should Evaluate return an error, the answer is a day later, when the evaluation gets another chance.
func (s *Schedule) Next(after time.Time) (next time.Time, ok bool) {
	next, ok, err := s.Evaluate(after)
	if err != nil {
		return after.UTC().Truncate(time.Second).AddDate(0, 0, 1), true
	}
	return next, ok
}

// Evaluate is Next for those who want to know about an error: a *document.Error, when the search took too many steps and was
// cut short. Parse refuses the rules for which that can be foreseen.
func (s *Schedule) Evaluate(after time.Time) (next time.Time, ok bool, err error) {
	return within(after, func(b *budget) (time.Time, bool) { return s.ask(after, b) })
}

// ask is Next within a budget. It means nothing when that is cut.
func (s *Schedule) ask(after time.Time, b *budget) (time.Time, bool) {
	at, ok := s.next(after.Unix(), b)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(at, 0).UTC(), true
}

// next merges the lines. Each looks no farther than to what the cheaper ones have found, so that a line which seldom occurs is not
// searched for years while another occurs each hour. It is asked again only behind what was excluded.
func (s *Schedule) next(after int64, b *budget) (int64, bool) {
	if after >= horizon {
		return 0, false
	}
	var quiet [maxRules]int64 // up to when each line is known to have no occurrence
	for i := range quiet {
		quiet[i] = -endless
	}
	for {
		best := int64(endless)
		if i, _ := slices.BinarySearch(s.dates, after+1); i < len(s.dates) {
			best = s.dates[i]
		}
		for i, rule := range s.rules {
			if quiet[i] <= after {
				quiet[i] = rule.next(after, best, b)
			}
			best = min(best, quiet[i])
		}
		if _, excluded := slices.BinarySearch(s.except, best); !excluded || !b.step() {
			return best, best != endless
		}
		after = best
	}
}

// Midnight returns the default dtstart of a model that is created at an instant: the beginning of that day in the zone, as
// "2006-01-02T00:00:00". It refuses an unknown zone and a day outside of 1970 to 2200 with a *document.Error.
func Midnight(now time.Time, timezone string) (dtstart string, err error) {
	z, err := loadZone(timezone)
	if err != nil {
		return "", err
	}
	return canonicalDtstart(now.In(z.loc).Format(time.DateOnly))
}

// Shown returns the instant at which the clocks of a zone show a wall clock, which is given as if it were UTC. One that clocks skip is read with the
// offset before the gap, and one that occurs twice is the first.
func Shown(wall time.Time, in *time.Location) time.Time {
	at, _, _ := zone{in}.resolve(wall.Unix())
	return time.Unix(at, int64(wall.Nanosecond())).UTC()
}

// Again returns after how long the clocks of a zone show an instant's time for the second time; 0: they do not.
func Again(at time.Time, in *time.Location) time.Duration {
	z, instant := zone{in}, at.Unix()
	now := z.offset(instant)
	later := z.offset(instant + now + daySeconds)
	if z.offset(instant+now-later) != later {
		return 0
	}
	return time.Duration(max(0, now-later)) * time.Second
}

const dtstartLayout = "2006-01-02T15:04:05"

// canonicalDtstart checks a dtstart and returns it as "2006-01-02T15:04:05". It accepts that form, a date alone (midnight),
// and the forms of RFC 5545 ("20060102T150405", "20060102"): a wall clock without Z or offset, on a whole second, from the year 1970
// to 2200. Everything else is refused with a *document.Error.
func canonicalDtstart(text string) (string, error) {
	wall, err := parseDtstart(text)
	if err != nil {
		return "", err
	}
	return time.Unix(wall, 0).UTC().Format(dtstartLayout), nil
}

func parseDtstart(text string) (wall int64, err error) {
	t, ok := parseFirst(text, dtstartLayout, time.DateOnly, rfcLayout, rfcDate)
	if !ok || t.Year() < 1970 || t.Year() > 2200 {
		return 0, &document.Error{Field: "dtstart", Want: `a wall clock time such as "2026-01-31T06:00:00", without Z or offset, from 1970 to 2200`, Found: document.Found(text)}
	}
	return t.Unix(), nil
}

// DefaultDtstart is the start of the schedule of a policy that names no dtstart: a Monday that begins a month and a
// year, so that "every second day" means the same days for all models.
const DefaultDtstart = "2001-01-01T00:00:00"

// Compile is Parse, or a cache of it.
type Compile func(rule, timezone, dtstart string) (*Schedule, error)

// A step is one look at a day, at a time of a day, at a line, or at the clocks of a zone: some tens of nanoseconds. Rules are bounded
// by steps and not by time, so that the same rule is refused on each machine and on each day. What was found before is remembered and
// costs nothing, so that a search may be cut short in a daemon that has just begun, and not in one that has asked before.
const (
	// maxCost is how many steps the lines of a rule set may take together to find their next occurrences. Lines in use take ten, the first
	// and the last working day of a year take 25, the hundredth takes 250; the third Sunday of a year that is a 7th takes 600.
	maxCost = 750

	// maxSteps bounds the steps of one question for the next occurrence: some times the foreseen ones, for those that EXDATE lines
	// and a spread add, and for lines that become dearer than they began.
	maxSteps = 4_000

	// maxAdmission is how many steps the compilation of a rule set may take: it counts a COUNT out, and it searches for a
	// first occurrence up to the horizon.
	maxAdmission = 60_000

	// probes is how many occurrences of each line are looked at when a rule set is compiled.
	probes = 8
)

// budget is how many steps are left. Below zero the search was cut short, and its result means nothing.
type budget int

func (b *budget) step() bool { return b.take(1) }

func (b *budget) take(steps int) bool {
	*b -= budget(steps)
	return *b >= 0
}

func (b *budget) cut() bool { return *b < 0 }

func within(after time.Time, ask func(*budget) (time.Time, bool)) (time.Time, bool, error) {
	b := budget(maxSteps)
	next, found := ask(&b)
	if b.cut() {
		return time.Time{}, false, tooManySteps(after)
	}
	return next, found, nil
}

func tooManySteps(after time.Time) error {
	return refuseRule(wantSteps(maxSteps), "more steps after "+after.UTC().Format(time.RFC3339))
}

func wantSteps(steps int) string {
	return "rules that find their next occurrence in at most " + strconv.Itoa(steps) + " steps"
}

// Cache keeps compiled schedules by their text, because many models share few. It keeps at most 8192 of them, about a
// kilobyte each and ten at most, and drops those that were not asked for lately. It is safe for concurrent use. The zero value is ready.
type Cache struct {
	mu       sync.Mutex
	recent   map[scheduleText]*Schedule // guarded by mu
	previous map[scheduleText]*Schedule // guarded by mu
}

type scheduleText struct{ rule, timezone, dtstart string }

// maxGeneration bounds each of the two maps.
const maxGeneration = 4096

// Get returns the schedule that Parse would return, or its error, which is not kept.
func (c *Cache) Get(rule, timezone, dtstart string) (*Schedule, error) {
	text := scheduleText{rule, timezone, dtstart}
	c.mu.Lock()
	s := c.recent[text]
	if s == nil {
		if s = c.previous[text]; s != nil {
			c.keep(text, s)
		}
	}
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := Parse(rule, timezone, dtstart)
	if err != nil {
		return nil, err
	}
	// A copy, because the texts may be small parts of a large document, which would stay in memory with them.
	text = scheduleText{strings.Clone(rule), strings.Clone(timezone), strings.Clone(dtstart)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(text, s)
	return s, nil
}

// keep needs mu.
func (c *Cache) keep(text scheduleText, s *Schedule) {
	if len(c.recent) >= maxGeneration || c.recent == nil {
		c.previous, c.recent = c.recent, make(map[scheduleText]*Schedule)
	}
	c.recent[text] = s
}
