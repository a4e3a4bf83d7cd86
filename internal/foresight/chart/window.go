package chart

import (
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

// scheme is how a run of many attempts is cut into rows of one length.
type scheme struct {
	length time.Duration // a day is a day of the wall clock, whatever its length
	label  string        // layout of a row's name
	ticks  int           // parts of a row that are labelled
	tick   func(i int) string
}

const oneDay = 24 * time.Hour

var schemes = []scheme{
	{oneDay, "Mon 2 Jan", 12, func(i int) string { return fmt.Sprintf("%02d:00", 2*i) }},
	{time.Hour, "2 Jan 15:04", 12, func(i int) string { return fmt.Sprintf(":%02d", 5*i) }},
	{10 * time.Minute, "2 Jan 15:04", 10, func(i int) string { return fmt.Sprintf("+%dm", i) }},
	{time.Minute, "2 Jan 15:04", 12, func(i int) string { return fmt.Sprintf("+%ds", 5*i) }},
}

// schemeOf takes the longest rows that make a picture of several rows, and that hold no more than can be seen.
func schemeOf(runs []*run, span period, zone *time.Location) scheme {
	for _, s := range schemes {
		most := 0
		for _, r := range runs {
			counts := map[int64]int{}
			for _, a := range r.attempts {
				row := s.floor(a.begin.At, zone).Unix()
				counts[row]++
				most = max(most, counts[row])
			}
		}
		if span.length() > s.length && most <= 120 {
			return s
		}
	}
	return schemes[len(schemes)-1]
}

func (s scheme) floor(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	if s.length == oneDay {
		return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
	}
	inHour := time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second + time.Duration(at.Nanosecond())
	return at.Add(-(inHour % s.length))
}

// window is one row: a stretch of time, or a line of words in place of rows.
type window struct {
	period
	words string
}

const maxWindows = 45

// windowsOf lays out the rows that hold an event. Where there is none for long, and where there are too many rows, words
// stand instead.
func windowsOf(r *run, s scheme) []window {
	var rows []window
	covered := s.floor(r.Start, r.Location)
	for _, event := range r.Events {
		if from := s.floor(event.At, r.Location); !from.Before(covered) {
			rows = append(rows, s.gap(covered, from)...)
			if covered = from.Add(s.length); s.length == oneDay {
				covered = from.AddDate(0, 0, 1)
			}
			rows = append(rows, window{period: period{from, covered}})
		}
	}
	rows = append(rows, s.gap(covered, s.floor(r.End, r.Location))...)
	left := len(rows) - maxWindows + 1
	if left <= 1 {
		return rows
	}
	// How a run begins and how it ends tells most.
	const tail = maxWindows / 3
	head := maxWindows - 1 - tail
	gap := window{words: fmt.Sprintf("%d rows are left out", left)}
	return slices.Concat(rows[:head], []window{gap}, rows[len(rows)-tail:])
}

// gap stands between two rows with events that do not follow each other.
func (s scheme) gap(from, to time.Time) []window {
	switch n := int64(to.Sub(from)+s.length/2) / int64(s.length); {
	case n <= 0:
		return nil
	case n == 1:
		return []window{{period: period{from, to}}}
	case s.length == oneDay:
		return []window{{words: fmt.Sprintf("%d days without an event", n)}}
	default:
		return []window{{words: words.Roughly(time.Duration(n)*s.length) + " without an event"}}
	}
}
