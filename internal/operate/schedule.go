package operate

import (
	"fmt"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
)

// OccurrencesRequest asks for the next occurrences of a rule.
type OccurrencesRequest struct {
	Rule     string // RRULE lines, cron or English
	Timezone string // empty: UTC
	Dtstart  string // empty: midnight of the day of After
	After    string // RFC 3339, or a wall clock; empty: now
	Count    int
}

// Occurrences are those of a rule.
type Occurrences struct {
	Rule     string
	Sentence string   // empty: English has no words for the rule
	Remarks  []string // other meanings of the rule
	Times    []time.Time
	Notes    []string // of each, where clocks that are changed move it; empty: none does
	Clocks   string   // the effect of the next change of clocks; empty: none
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
	zone, err := schedule.Zone(read.Timezone)
	if err != nil {
		return found, refusedRule(err)
	}
	after, dtstart := now, read.Dtstart
	if r.After != "" {
		if after, err = simulate.ParseTime(r.After, zone); err != nil {
			return found, refusedAt("after", err)
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
	found.Rule = read.Rule
	found.Sentence, found.Remarks = read.Sentence(), schedule.Remarks(read.Rule)
	found.Clocks = compiled.NextChange(after, r.Rule)
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

// refusedRule refuses a rule under the name of its field here.
func refusedRule(err error) error { return refused(document.Rename(err, "rrule", "rule")) }
