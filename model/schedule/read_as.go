package schedule

import (
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/words"
)

// Understood is how a schedule was read, for those who wrote it in their own words.
type Understood struct {
	Sentence string   `json:"sentence"`           // one sentence, or the rule where English has no words for it
	Timezone string   `json:"timezone,omitempty"` // of the wall clocks in both; empty: there is no rule
	Next     []string `json:"next,omitempty"`     // the next three occurrences, such as "Tue 2026-11-24 06:00"; fewer when it ends
}

const shownNext = 3

// ReadAs tells how a rule was read, and when it occurs after an instant, of whose day midnight stands for an empty dtstart. Errors are those of Parse.
func ReadAs(rule, timezone, dtstart string, after time.Time) (u Understood, err error) {
	if dtstart == "" {
		if dtstart, err = Midnight(after, timezone); err != nil {
			return u, err
		}
	}
	compiled, err := Parse(rule, timezone, dtstart)
	if err != nil {
		return u, err
	}
	u = Understood{Sentence: "by the rule " + strings.Join(strings.Fields(rule), " "), Timezone: compiled.zone.loc.String()}
	if sentence, ok := RuleEnglish(rule); ok {
		u.Sentence = sentence
	}
	for len(u.Next) < shownNext {
		next, ok, err := compiled.Evaluate(after)
		if err != nil || !ok {
			return u, err
		}
		layout := "Mon 2006-01-02 15:04"
		if next.Second() != 0 {
			layout += ":05"
		}
		u.Next, after = append(u.Next, next.In(compiled.zone.loc).Format(layout)), next
	}
	return u, nil
}

func (u Understood) String() string {
	if u.Timezone == "" {
		return u.Sentence
	}
	next := words.List(u.Next)
	if len(u.Next) == 0 {
		next = "never again"
	}
	return u.Sentence + " (" + u.Timezone + "); next: " + next
}
