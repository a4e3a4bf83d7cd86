package model

import (
	"testing"
	"time"
)

func TestTheRateIsThatOfTheLastMinuteSinceTheListWasEmpty(t *testing.T) {
	start := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	front := func(ticket, first int) HeadSample { return HeadSample{ticket, at(first), at(first)} }
	for name, test := range map[string]struct {
		noted []HeadSample
		want  float64
	}{
		"nothing was noted":           {nil, 0},
		"one front":                   {[]HeadSample{front(5, 90)}, 0},
		"two fronts":                  {[]HeadSample{front(5, 90), front(45, 95)}, 4},
		"the list was empty between":  {[]HeadSample{front(5, 80), {Ticket: 9, FirstSeen: at(85)}, front(10, 90), front(30, 95)}, 2},
		"older than a minute":         {[]HeadSample{front(1, 0), front(5, 60), front(45, 95)}, 1},
		"the front has not moved now": {[]HeadSample{front(5, 60), front(45, 61)}, 1},
	} {
		if got := (HeadSamples{Noted: test.noted, At: at(100)}).Rate(); got != test.want {
			t.Errorf("%s: want %g a second, got %g", name, test.want, got)
		}
	}
}
