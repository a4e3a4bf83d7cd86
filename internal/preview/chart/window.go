package chart

import (
	"fmt"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

// scheme divides a run of many attempts into rows of one length.
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

// schemeOf returns the longest rows that make several rows and are not too full.
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

// window is one row: a period, or words instead of rows.
type window struct {
	period
	words string
}

const maxWindows = 45

// windowsOf returns the rows with events, and words for the gaps. Of too many rows it leaves out those in the middle.
func windowsOf(r *run, s scheme) (rows []window) {
	var shown []period
	for _, event := range r.Events {
		from := s.floor(event.At, r.Location)
		if n := len(shown); n > 0 && from.Before(shown[n-1].to) {
			continue
		}
		to := from.Add(s.length)
		if s.length == oneDay {
			to = from.AddDate(0, 0, 1)
		}
		shown = append(shown, period{from, to})
	}
	const tail = maxWindows / 3
	left, cut := len(shown)-maxWindows+1, time.Time{}
	if left > 1 {
		shown = slices.Delete(shown, maxWindows-1-tail, len(shown)-tail)
		cut = shown[maxWindows-1-tail].from
	}
	covered := s.floor(r.Start, r.Location)
	for _, one := range append(shown, period{from: s.floor(r.End, r.Location)}) {
		gap := words.Roughly(one.from.Sub(covered).Round(s.length)) + " without an event"
		if one.from.Equal(cut) {
			gap = fmt.Sprintf("%d rows are left out", left)
		}
		if one.from.After(covered) {
			rows = append(rows, window{words: gap})
		}
		if covered = one.to; !covered.IsZero() {
			rows = append(rows, window{period: one})
		}
	}
	return rows
}
