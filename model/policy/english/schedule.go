package english

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/schedule"
)

var (
	inTheZone = regexp.MustCompile(`(?i)^(.+?),? (?:in the time ?zone ("\d+"|\S+)|\(([a-z][\w+/-]*)\))$`)
	byTheRule = regexp.MustCompile(`(?i)^(?:.* )?(?:by the rule (.+)|([^ "]*FREQ=.+))$`)
)

// Where a schedule begins: at the first word that may belong to one. A subject with such a word stands in quotes, so that no part
// of a schedule is taken for a part of the subject: "on weekdays every 2 hours".
var (
	scheduleWords = strings.Fields("every each once twice hourly daily weekly monthly quarterly yearly annually at on in from for " +
		"not never except unless only but between until after before during while without noon midday midnight")
	dayName   = regexp.MustCompile(`^(?:days?|weekdays?|workdays?|weekends?|(?:mon|tue|wed|thu|fri|sat|sun)|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)$`)
	dayNumber = regexp.MustCompile(`^(?:first|second|third|fourth|fifth|last|and|\d+(?:st|nd|rd|th))$`)
	cronField = regexp.MustCompile(`^[\d*][\d*/,-]*$`)
)

// maySchedule reports whether a schedule may begin with these words, which are in lower case.
func maySchedule(words []string) bool {
	if slices.Contains(scheduleWords, words[0]) || strings.HasPrefix(words[0], "@") || surelySchedule(words) {
		return true
	}
	if len(words) >= 5 && cronField.MatchString(words[0]) && cronField.MatchString(words[1]) {
		return true
	}
	named := slices.IndexFunc(words, func(word string) bool { return !dayNumber.MatchString(word) })
	return named >= 0 && dayName.MatchString(words[named])
}

// surelySchedule is maySchedule where "at" and "daily" may belong to the name of something.
func surelySchedule(words []string) bool {
	return len(words) > 1 && (slices.Contains(scheduleWords[:4], words[0]) || words[1] == "times")
}

// refresh reads "the model every 2 hours in the time zone Europe/Berlin". The subject is free.
func (d *draft) refresh(slots []string) error {
	rest, err := d.zone(slots[0])
	if err != nil {
		return err
	}
	if rule := byTheRule.FindStringSubmatch(rest); rule != nil {
		return d.set("rrule", d.now.restore(rule[1]+rule[2]))
	}
	return d.schedule(rest, maySchedule)
}

// request reads the action of a model without a schedule; but one that names times has one.
func (d *draft) request(slots []string) error {
	if err := d.schedule(slots[0], surelySchedule); !errors.Is(err, errNotKnown) {
		return err
	}
	return nil
}

func (d *draft) zone(text string) (rest string, err error) {
	found := inTheZone.FindStringSubmatch(text)
	if found == nil {
		return text, nil
	}
	return found[1], d.set("timezone", d.now.value(found[2]+found[3]))
}

// schedule reads the schedule at the end of a text, from the first word outside of quotes that may begin one. A text in which
// nothing begins one is not known.
func (d *draft) schedule(text string, begins func([]string) bool) error {
	words := strings.Fields(text)
	lower := make([]string, len(words))
	for i, word := range words {
		lower[i] = strings.TrimRight(strings.ToLower(word), ",")
	}
	for i := range min(len(words), maxSubject) {
		if !maySchedule(lower[i:]) {
			continue
		}
		rule, err := schedule.RuleText(d.now.restore(strings.Join(words[i:], " ")))
		if err == nil {
			return d.set("rrule", rule)
		}
		for j := i; j < len(words); j++ {
			if begins(lower[j:]) {
				return d.place(err, "rrule")
			}
		}
		return errNotKnown
	}
	return errNotKnown
}

// maxSubject is how many words may stand before a schedule.
const maxSubject = 12

// alsoByRule adds a line to the rule of an earlier sentence.
func (d *draft) alsoByRule(slots []string) error {
	rule, found := d.doc["rrule"].(string)
	if !found {
		return d.refuse(`a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`, d.found())
	}
	d.doc["rrule"] = rule + "\n" + d.now.restore(slots[0])
	return nil
}
