package english

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

// What the forms of sentences.go mean. Each function takes what the slots of its form hold.

func sayNothing(*draft, []string) error { return nil }

func set(field string, value any) func(*draft, []string) error {
	return func(d *draft, _ []string) error { return d.set(field, value) }
}

func setExhausted(what string) func(*draft, []string) error {
	return func(d *draft, _ []string) error { return d.exhausted(what) }
}

func setValue(field string) func(*draft, []string) error {
	return func(d *draft, slots []string) error { return d.set(field, d.now.value(slots[0])) }
}

func setDuration(field string) func(*draft, []string) error {
	return func(d *draft, slots []string) error {
		duration, err := d.duration(field, slots[0])
		if err != nil {
			return err
		}
		return d.set(field, duration)
	}
}

// calendars reads names of calendars. They need to be like one where no word says that they are.
func (d *draft) calendars(slots []string) error {
	var names []any
	for _, name := range betweenAll.Split(slots[1], -1) {
		if slots[0] == "" && name[0] != '"' && !isCalendar(name) {
			return d.refuse(`"holidays", a name in quotes, or "the calendar" before it`, document.Found(name))
		}
		names = append(names, d.now.value(name))
	}
	return d.set("closed", names)
}

var (
	calendarName = regexp.MustCompile(`(?i)^(?:holidays|[a-z]+(?:[-_][a-z0-9]+)+)$`) // the usual one, or several words in one
	dayIn        = regexp.MustCompile(`(?i)days?(?:[-_]|$)|^(?:mon|tue|wed|thu|fri|sat|sun)[-_]|week|month|year|hour`)
)

// isCalendar reports whether a name can be nothing but that of a calendar: "Sundays" is none.
func isCalendar(name string) bool {
	return calendarName.MatchString(name) && (!dayIn.MatchString(name) || strings.EqualFold(name, "holidays"))
}

func (d *draft) giveUpAfter(slots []string) error {
	d.inWindow = true
	d.openBlock()
	return setDuration("give_up_after")(d, slots)
}

func (d *draft) misfireYounger(slots []string) error {
	age, err := d.duration("misfire", slots[0])
	if err != nil {
		return err
	}
	return d.set("misfire", "run_if_younger_than "+age)
}

// emailTo takes who gets e-mail from the slot that says it, if any. Several sentences may say the same.
func (d *draft) emailTo(slots []string) error {
	text := strings.TrimSpace(strings.Join(slots, ""))
	if text == "" {
		return nil
	}
	var to any = d.now.value(text)
	if kind, name, is := strings.Cut(strings.Trim(text, "{}"), ":"); is && text[0] == '{' {
		to = map[string]any{strings.ToLower(kind): strings.TrimSpace(name)}
	} else if words := strings.Fields(text); len(words) == 4 {
		to = map[string]any{"payload": words[0]}
	} else if len(words) == 3 {
		to = map[string]any{"label": words[2]}
	}
	if reflect.DeepEqual(d.doc["email"], to) {
		return nil
	}
	return d.set("email", to)
}

func (d *draft) notifyFailing(slots []string) error {
	k, known := words.Ordinal(slots[1])
	if !known {
		k = countOf(slots[1])
	}
	d.mail()
	if err := d.emailTo(slots[:1]); err != nil {
		return err
	}
	return d.set("failing_from", float64(k))
}

func (d *draft) notifyOwner(slots []string) error {
	notices, known := d.events(slots[1])
	if !known {
		return errNotKnown
	}
	if err := d.emailTo(slots[:1]); err != nil {
		return err
	}
	for _, notice := range notices {
		if err := d.notify(notice); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) notifyAll([]string) error {
	for _, notice := range policy.Notices {
		if err := d.notify(notice); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) expression(slots []string) error {
	return d.set("retries", map[string]any{"expr": d.now.value(slots[0])})
}

func (d *draft) aligner(slots []string) error {
	return d.set("alignment", map[string]any{"expr": d.now.value(slots[0])})
}

// vary reads a percentage. The exponent keeps it exact: 7 / 100 would not be the nearest to 0.07 for all numbers.
func (d *draft) vary(slots []string) error {
	share, err := strconv.ParseFloat(slots[0]+"e-2", 64)
	if err != nil {
		return d.refuse("a percentage from 0 to 100", d.found())
	}
	return d.set("jitter", share)
}

func (d *draft) window(slots []string) error { return d.set("retry_window", d.now.restore(slots[0])) }

// upToAge reads one row of the table of delays by age; several make the table.
func (d *draft) upToAge(slots []string) error {
	table, _ := d.doc["retries"].(map[string]any)
	rows, isTable := table["by_age"].([]any)
	field := element("retries.by_age", len(rows))
	age, err := d.duration(field+".up_to", slots[0])
	if err != nil {
		return err
	}
	delay, err := d.delay(field+".delay", slots[1])
	if err != nil {
		return err
	}
	if d.lines["retries"] > 0 && !isTable {
		return d.twice("retries", d.now.line, d.now.original())
	}
	d.doc["retries"] = map[string]any{"by_age": append(rows, any(map[string]any{"up_to": age, "delay": delay}))}
	return d.setInner("retries", field)
}

// delay reads an action that can be nothing but a delay: a retry, or a wait for the next scheduled refresh.
func (d *draft) delay(field, action string) (string, error) {
	o := &outcome{line: d.now.line, field: field}
	d.at = o
	defer d.closeBlock()
	if err := d.act(action); err != nil {
		return "", err
	}
	if final, err := o.resolve(1); err != nil || final != "" {
		return "", errNotKnown
	}
	return o.delay, nil
}

// onFailure reads what follows some failures in the same sentence.
func (d *draft) onFailure(slots []string) error {
	numbers, known := failureNumbers(strings.ToLower(slots[0]))
	if !known {
		return errNotKnown
	}
	for _, k := range numbers {
		if err := d.atFailure(k); err != nil {
			return err
		}
		if err := d.act(slots[1]); err != nil {
			return err
		}
	}
	d.openBlock()
	return nil
}

// failureNumbers reads "second", "first and second", "first three" and "2".
func failureNumbers(text string) (numbers []int, known bool) {
	if first := strings.TrimPrefix(text, "first "); countOf(first) > 0 {
		for k := range min(countOf(first), 1000) {
			numbers = append(numbers, k+1)
		}
		if first == text { // the only one
			numbers = numbers[len(numbers)-1:]
		}
		return numbers, true
	}
	for _, ordinal := range betweenAll.Split(text, -1) {
		k, known := words.Ordinal(ordinal)
		if !known {
			return nil, false
		}
		numbers = append(numbers, k)
	}
	return numbers, true
}

// headFailure opens a block about one failure.
func (d *draft) headFailure(slots []string) error {
	k, known := words.Ordinal(slots[0])
	if !known {
		return errNotKnown
	}
	d.block = block{heading: d.now.level}
	return d.atFailure(k)
}

// atFailure lets the actions that follow be about one failure.
func (d *draft) atFailure(k int) error {
	if before := d.failures[k]; before != nil {
		return d.refuse("one sentence about the "+words.FormatOrdinal(k)+" failure, which is in line "+number(before.line), "a second: "+d.found())
	}
	if d.ended > 0 {
		return d.refuse("no failure after line "+number(d.ended)+", which says what follows the last one", d.found())
	}
	d.at = &outcome{line: d.now.line, field: element("retries", k-1), said: d.now.original()}
	d.failures[k] = d.at
	return nil
}

// giveUpAtOnce reads that there is no retry.
func (d *draft) giveUpAtOnce([]string) error {
	if err := d.set("retries", []any{}); err != nil {
		return err
	}
	return d.exhausted(giveUp)
}

// afterThat reads what follows the last retry.
func (d *draft) afterThat(slots []string) error {
	d.closeBlock()
	return d.act(slots[0])
}

// atEnd is afterThat where the sentence says itself that it is about the last retry, so that it may stand before the first.
func (d *draft) atEnd(slots []string) error {
	ended := d.ended
	defer func() { d.ended = ended }()
	return d.afterThat(slots)
}
