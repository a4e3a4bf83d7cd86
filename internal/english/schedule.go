package english

import (
	"errors"
	"regexp"
	"strings"

	"github.com/refreshd/refreshd/model"
)

// ruleText turns a schedule in words ("twice per day at 6 AM and 4 PM") into the text of a rule; ruleEnglish is its inverse.
var (
	ruleText = func(phrase string) (string, error) {
		if at := someSchedule.FindStringIndex(phrase); at != nil && at[0] == 0 {
			return phrase, nil
		}
		return "", &model.FieldError{Field: "rrule", Want: "a schedule", Found: model.Found(phrase)}
	}
	ruleEnglish = func(string) (string, bool) { return "", false }
)

var (
	inTheZone = regexp.MustCompile(`(?i)^(.+?),? (?:in the time ?zone ("\d+"|\S+)|\(([a-z][\w+/-]*)\))$`)
	byTheRule = regexp.MustCompile(`(?i)^(?:.* )?(?:by the rule (.+)|([^ "]*FREQ=.+))$`)
	// Where the words of a schedule begin, to have something to refuse when nobody understands them.
	someSchedule = regexp.MustCompile(`(?i)(?:^| )((?:every|each|once|twice|(?:\d+|three|four|five|six) times|hourly|daily|weekly|monthly|yearly|at|on) .+|` +
		`hourly|daily|weekly|monthly|yearly)$`)
	// The same, where "at" and "daily" may belong to the name of something.
	surelySchedule = regexp.MustCompile(`(?i)(?:^| )((?:every|each|once|twice|(?:\d+|three|four|five|six) times) .+)$`)
)

// refresh reads "the model every 2 hours in the time zone Europe/Berlin". The subject is free.
func (d *draft) refresh(words []string) error {
	rest, err := d.zone(words[0])
	if err != nil {
		return err
	}
	if rule := byTheRule.FindStringSubmatch(rest); rule != nil {
		return d.set("rrule", d.now.restore(rule[1]+rule[2]))
	}
	return d.schedule(rest, someSchedule)
}

// request reads the action of a model without a schedule; but one that names times has one.
func (d *draft) request(words []string) error {
	err := d.schedule(words[0], surelySchedule)
	if errors.Is(err, errNotKnown) {
		return nil
	}
	return err
}

func (d *draft) zone(text string) (rest string, err error) {
	found := inTheZone.FindStringSubmatch(text)
	if found == nil {
		return text, nil
	}
	return found[1], d.set("timezone", d.now.value(found[2]+found[3]))
}

// maxSubject is how many words may stand before a schedule.
const maxSubject = 12

// schedule looks for the longest end of a text that is a schedule. Quotes may be part of the subject, but not of a schedule.
func (d *draft) schedule(text string, looksLike *regexp.Regexp) error {
	text = text[strings.LastIndex(text, `"`)+1:]
	words := strings.Fields(text)
	for i := range min(len(words), maxSubject) {
		if rule, err := ruleText(strings.Join(words[i:], " ")); err == nil {
			return d.set("rrule", rule)
		}
	}
	phrase := looksLike.FindStringSubmatch(text)
	if phrase == nil {
		return errNotKnown
	}
	_, err := ruleText(phrase[1])
	var refused *model.FieldError
	if errors.As(err, &refused) {
		return &Error{d.now.line, refused}
	}
	return errNotKnown
}

// alsoByRule adds a line to the rule of an earlier sentence.
func (d *draft) alsoByRule(words []string) error {
	rule, found := d.doc["rrule"].(string)
	if !found {
		return d.refuse(`a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`, d.found())
	}
	d.doc["rrule"] = rule + "\n" + d.now.restore(words[0])
	return nil
}
