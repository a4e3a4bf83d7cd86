package schedule

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model/document"
)

var (
	must   = check.Must
	failIf = check.FailIf
	stopIf = check.StopIf
)

func readCalendar(t testing.TB, text string) (Calendar, error) {
	t.Helper()
	var value any
	must(t, json.Unmarshal([]byte(text), &value))
	return ParseCalendar(value)
}

func calendarOf(t testing.TB, text string) Calendar {
	t.Helper()
	c, err := readCalendar(t, text)
	stopIf(t, err != nil, "%s: %v", text, err)
	return c
}

func TestACalendarIsReadAndReadBack(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0","for":"4h"}`: `{"name":"nightly","rrule":"FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0","for":"4h"}`,
		`{"name":"2026.x_y-z","rrule":"every Sunday at 2 AM","timezone":"Europe/Berlin","dtstart":"2026-01-01","for":14400,"reason":"Backup"}`: `{"name":"2026.x_y-z",` +
			`"rrule":"FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=0;BYSECOND=0","timezone":"Europe/Berlin","dtstart":"2026-01-01T00:00:00","for":"4h","reason":"Backup"}`,
		`{"name":"holidays","rrule":"RDATE:20261225T000000,20261226T000000","for":"PT24H","reason":""}`: `{"name":"holidays","rrule":"RDATE:20261225T000000,20261226T000000","for":"1d"}`,
	} {
		c := calendarOf(t, text)
		canonical, err := json.Marshal(c)
		failIf(t, err != nil || string(canonical) != want, "%s:\n got %s, %v\nwant %s", text, canonical, err, want)
		again := calendarOf(t, string(canonical))
		failIf(t, !again.Equal(c), "%s is read back as %+v", canonical, again)
	}
	a, b := calendarOf(t, `{"name":"a","rrule":"FREQ=DAILY","for":"1h"}`), calendarOf(t, `{"name":"a","rrule":"FREQ=DAILY","for":"2h"}`)
	failIf(t, a.Equal(b), "an hour equals two")
}

func TestABadCalendarIsRefusedWithTheField(t *testing.T) {
	const daily = `"name":"a","rrule":"FREQ=DAILY"`
	const opens = "for: expected less than the time between the occurrences, so that it opens within a year of the first and few of them follow each other before, found "
	for text, want := range map[string]string{
		`7`:                           "expected an object with name, rrule, timezone, dtstart, for, reason, found 7",
		`{` + daily + `,"until":"x"}`: "until: expected one of name, rrule, timezone, dtstart, for, reason, found an unknown field",
		`{"rrule":"FREQ=DAILY"}`:      `name: expected the name of a calendar: 1-50 letters, digits or _.- (first a letter or digit), found ""`,
		`{"name":"a b"}`:              `name: expected the name of a calendar: 1-50 letters, digits or _.- (first a letter or digit), found "a b"`,
		`{"name":"a","for":"1h"}`:     `rrule: expected a rule such as "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2", found nothing`,
		`{` + daily + `}`:             `for: expected a duration from 1m to 31d, such as "4h", found nothing`,
		`{` + daily + `,"for":"59s"}`: `for: expected a duration from 1m to 31d, such as "4h", found "59s"`,
		`{` + daily + `,"for":"1h","timezone":"Mars/Base"}`: `timezone: expected an IANA time zone such as "Europe/Berlin", found "Mars/Base"`,
		`{` + daily + `,"for":"1h","reason":"a\nb"}`:        `reason: expected one line of at most 500 bytes, found "a\nb"`,
		`{` + daily + `,"for":"1d"}`:                        opens + "1d",
		`{"name":"a","rrule":"FREQ=MONTHLY","for":"31d"}`:   opens + "31d",
	} {
		_, err := readCalendar(t, text)
		failIf(t, err == nil || err.Error() != want, "%s:\n got %v\nwant %s", text, err, want)
	}
	for text, field := range map[string]string{`"rrule":"FREQ=NEVER"`: "rrule FREQ", `"rrule":"FREQ=DAILY","dtstart":"soon"`: "dtstart"} {
		_, err := readCalendar(t, `{"name":"a","for":"1h",`+text+`}`)
		failIf(t, refusedField(err) != field, "%s: %v, want a refusal of %s", text, err, field)
	}
}

// closes checks until when a calendar is closed at each of the local times; empty: it is open.
func closes(t *testing.T, text string, want map[string]string) {
	t.Helper()
	c := calendarOf(t, text)
	for at, until := range want {
		now := parseLocal(t, at, c.Timezone)
		got, closed, err := c.ClosedUntil(now)
		shown := ""
		if closed {
			shown = got.In(now.Location()).Format(localLayout)
		}
		failIf(t, err != nil || shown != until, "%s: at %s closed until %q, %v; want %q", text, at, shown, err, until)
	}
}

const localLayout = "2006-01-02 15:04:05 -0700"

func parseLocal(t *testing.T, text, zone string) time.Time {
	t.Helper()
	loc := check.Got(Zone(zone))(t)
	if at, err := time.Parse(localLayout, text); err == nil {
		return at.In(loc)
	}
	at := check.Got(time.ParseInLocation("2006-01-02 15:04:05", text, loc))(t)
	return at
}

func TestACalendarIsClosedFromEachOccurrenceForItsLength(t *testing.T) {
	closes(t, `{"name":"a","rrule":"FREQ=DAILY;BYHOUR=2;BYMINUTE=0;BYSECOND=0","for":"4h"}`, map[string]string{
		"2026-06-10 01:59:59": "", "2026-06-10 02:00:00": "2026-06-10 06:00:00 +0000", "2026-06-10 05:59:59": "2026-06-10 06:00:00 +0000",
		"2026-06-10 06:00:00": "",
		"2000-12-31 02:00:00": "", // before it begins
	})
	closes(t, `{"name":"a","rrule":"FREQ=DAILY;BYHOUR=22;BYMINUTE=0;BYSECOND=0\nEXDATE:20260610T220000","timezone":"Europe/Berlin","for":"8h"}`, map[string]string{
		"2026-06-10 05:59:59": "2026-06-10 06:00:00 +0200",
		"2026-06-10 22:00:00": "", // excluded
		"2026-06-11 05:59:59": "", "2026-06-11 22:00:00": "2026-06-12 06:00:00 +0200",
	})
	c, begin := calendarOf(t, `{"name":"a","rrule":"FREQ=DAILY;BYHOUR=2","for":"90s"}`), time.Date(2026, 6, 10, 2, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]bool{-time.Millisecond: false, 0: true, 89_999 * time.Millisecond: true, 90 * time.Second: false, 90_001 * time.Millisecond: false} {
		_, closed, _ := c.ClosedUntil(begin.Add(after))
		failIf(t, closed != want, "%s after the beginning closed: %t", after, closed)
	}
}

func TestPeriodsThatTouchOrOverlapAreOne(t *testing.T) {
	closes(t, `{"name":"weekend","rrule":"FREQ=WEEKLY;BYDAY=SA,SU","for":"24h"}`, map[string]string{ // they touch
		"2026-06-12 23:59:59": "",
		"2026-06-13 00:00:00": "2026-06-15 00:00:00 +0000",
		"2026-06-15 00:00:00": "",
	})
	closes(t, `{"name":"a","rrule":"RDATE:20261224T120000,20261225T000000,20261226T000000,20261227T000001","for":"1d"}`, map[string]string{ // they overlap, and one comes a second late
		"2026-12-24 12:00:00": "2026-12-27 00:00:00 +0000",
		"2026-12-27 00:00:00": "",
		"2026-12-27 00:00:01": "2026-12-28 00:00:01 +0000",
	})
	closes(t, `{"name":"a","rrule":"RRULE:FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=MONTHLY;BYMONTHDAY=14;BYHOUR=3;BYMINUTE=0;BYSECOND=0","for":"2h"}`,
		map[string]string{"2026-06-14 02:30:00": "2026-06-14 05:00:00 +0000", "2026-06-21 02:30:00": "2026-06-21 04:00:00 +0000", "2026-07-14 04:30:00": "2026-07-14 05:00:00 +0000"})
	closes(t, `{"name":"a","rrule":"FREQ=MINUTELY;BYHOUR=2","for":"10m"}`, map[string]string{"2026-06-14 02:00:30": "2026-06-14 03:09:00 +0000"})
}

func TestTheNextClosingFollowsTheOneAtHand(t *testing.T) {
	c := calendarOf(t, `{"name":"weekend","rrule":"FREQ=WEEKLY;BYDAY=SA,SU;UNTIL=20260621T000000Z","for":"24h"}`)
	day := func(d int) time.Time { return time.Date(2026, 6, d, 0, 0, 0, 0, time.UTC) }
	for after, want := range map[time.Time]Closing{
		day(12):                        {day(13), day(15)},
		day(13).Add(-time.Millisecond): {day(13), day(15)},
		day(13):                        {day(20), day(22)},
		day(14):                        {day(20), day(22)},
		day(15):                        {day(20), day(22)},
		day(20):                        {},
		day(28):                        {},
	} {
		got, found, err := c.NextClosed(after)
		failIf(t, err != nil || found != (want != Closing{}) || !got.From.Equal(want.From) || !got.Until.Equal(want.Until),
			"after %s: %v, %t, %v; want %v", after, got, found, err, want)
	}
}

// A rule may become dense long after its first occurrences.
func TestACalendarThatHardlyOpensTakesABoundedNumberOfSteps(t *testing.T) {
	c := calendarOf(t, `{"name":"a","rrule":"RRULE:FREQ=MINUTELY\nRDATE:20010101T000000","dtstart":"2026-01-01","for":"1m"}`)
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	until, closed, err := c.ClosedUntil(now)
	failIf(t, err != nil || !closed || until.Sub(now) < time.Hour || until.Sub(now) > 7*24*time.Hour, "closed until %s, %t, %v", until, closed, err)
	later, closed, err := c.ClosedUntil(until)
	failIf(t, err != nil || !closed || !later.After(until), "asked again, closed until %s, %t, %v", later, closed, err)
	dear := calendarOf(t, `{"name":"a","rrule":"`+lateDear+`","dtstart":"2026-01-01","timezone":"Europe/Berlin","for":"1m"}`)
	_, closed, err = dear.ClosedUntil(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	failIf(t, closed || err == nil || !strings.Contains(err.Error(), "more steps after 2026-06-01T12:00:00Z"),
		"a search that is cut short is closed: %t, %v", closed, err)
}

// Against all occurrences, one after the other.
func TestACalendarIsClosedWhereverAnOccurrenceLasts(t *testing.T) {
	r, want := rand.New(rand.NewPCG(11, 0)), long.Or(200, 1_500)
	for want > 0 {
		rule := randomRule(r)
		length := minClosed + time.Duration(r.Int64N(1<<(6+r.IntN(15))))*time.Second
		c, err := ParseCalendar(map[string]any{"name": "a", "rrule": rule.Text, "timezone": rule.Timezone, "dtstart": rule.Dtstart, "for": document.FormatDuration(length)})
		if err != nil {
			continue
		}
		want--
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(3*365*86_400)) * time.Second)
		if next, found := c.starts.Next(begin); found {
			begin = next.Add(-length / 2)
		}
		for range 8 {
			now := begin.Add(time.Duration(r.Int64N(int64(3 * length))))
			wantUntil, wantClosed, known := walkClosed(c, now)
			if !known { // so dense a rule may never open again
				continue
			}
			until, closed, err := c.ClosedUntil(now)
			for more := closed; more && err == nil; { // dense occurrences take several questions
				var later time.Time
				if later, more, err = c.ClosedUntil(until); more {
					until = later
				}
			}
			stopIf(t, err == nil && (closed != wantClosed || closed && !until.Equal(wantUntil)),
				"%s for %s: at %s closed until %s, %t; want %s, %t", rule, length, now, until, closed, wantUntil, wantClosed)
		}
	}
}

// walkClosed is ClosedUntil by looking at each occurrence; known is false where there are too many.
func walkClosed(c Calendar, now time.Time) (until time.Time, closed, known bool) {
	at := now.Add(-2 * c.For)
	for range 500 {
		next, found, err := c.starts.Evaluate(at)
		if err != nil {
			return until, closed, false
		}
		if !found || next.After(now) && (!closed || next.After(until)) {
			return until, closed, true
		}
		if end := next.Add(c.For); end.After(now) {
			until, closed = end, true
		}
		at = next
	}
	return until, closed, false
}
