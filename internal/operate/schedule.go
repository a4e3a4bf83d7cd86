package operate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// OccurrencesRequest says which occurrences of which rule are told.
type OccurrencesRequest struct {
	Rule     string // RRULE lines, cron or English
	Timezone string // empty: UTC
	Dtstart  string // empty: midnight of the day of After
	After    string // RFC 3339, or a wall clock; empty: now
	Count    int
}

// Occurrences are those of a rule that were asked for.
type Occurrences struct {
	Rule     string
	Sentence string // empty: English has no words for the rule
	Times    []time.Time
	Notes    []string // of each, where clocks that are changed move it; empty: none does
	Ended    bool     // there are fewer than asked for
}

const maxOccurrences = 1000

// NextOccurrences walks a schedule.
func NextOccurrences(r OccurrencesRequest, now time.Time) (found Occurrences, err error) {
	if r.Count < 1 || r.Count > maxOccurrences {
		return found, refuse("count", fmt.Sprintf("1 to %d", maxOccurrences), fmt.Sprint(r.Count))
	}
	doc := &document.Reader{Fields: map[string]any{"rrule": r.Rule, "timezone": r.Timezone, "dtstart": r.Dtstart}}
	read := schedule.ReadFields(doc)
	if doc.Err() != nil {
		return found, refusedRule(doc.Err())
	}
	after, dtstart := now, read.Dtstart
	if r.After != "" {
		if after, err = readAfter(r.After, read.Timezone); err != nil {
			return found, err
		}
	}
	if dtstart == "" {
		if dtstart, err = schedule.Midnight(after, read.Timezone); err != nil {
			return found, refusedRule(err)
		}
	}
	compiled, err := schedule.Parse(read.Rule, read.Timezone, dtstart)
	if err != nil {
		return found, refusedRule(err)
	}
	zone, err := time.LoadLocation(read.Timezone)
	if err != nil {
		return found, err
	}
	found.Rule = read.Rule
	found.Sentence = read.Sentence()
	for len(found.Times) < r.Count && !found.Ended {
		next, ok, err := compiled.Evaluate(after)
		if err != nil {
			return found, err
		}
		if found.Ended = !ok; ok {
			after = next
			found.Times, found.Notes = append(found.Times, next.In(zone)), append(found.Notes, compiled.Note(next.In(zone)))
		}
	}
	return found, nil
}

func readAfter(text, timezone string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Year() >= 1970 && at.Year() <= 2200 {
		return at, nil
	}
	at, err := schedule.Instant(text, timezone)
	if field, ok := errors.AsType[*document.Error](err); ok && field.Field == "dtstart" {
		err = document.Refuse("after", "a time such as 2026-01-31T06:00:00Z or a wall clock such as 2026-01-31T06:00:00, from 1970 to 2200", field.Found)
	}
	return at, refusedRule(err)
}

// refusedRule calls the field of a refused rule as it is asked for.
func refusedRule(err error) error {
	if field, is := errors.AsType[*document.Error](err); is {
		if part, ours := strings.CutPrefix(field.Field, "rrule"); ours {
			return refuse("rule"+part, field.Want, field.Found)
		}
	}
	return refused(err)
}
