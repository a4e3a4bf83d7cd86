package english

import (
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

// What the forms of sentences.go mean. Each function takes what the slots of its form hold.

func set(field string, value any) func(*draft, []string) {
	return func(d *draft, _ []string) { d.set(field, value) }
}

func setValue(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, d.now.value(slots[0])) }
}

func setDuration(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, d.duration(field, slots[0])) }
}

// calendars reads names of calendars. They need to be like one where no word says that they are.
func (d *draft) calendars(slots []string) {
	var names []any
	for _, name := range betweenAll.Split(slots[1], -1) {
		if slots[0] == "" && name[0] != '"' && !isCalendar(name) {
			d.refuse(`"holidays", a name in quotes, or "the calendar" before it`, document.Found(name))
		}
		names = append(names, d.now.value(name))
	}
	d.set("closed", names)
}

var (
	calendarName = regexp.MustCompile(`(?i)^(?:holidays|[a-z]+(?:[-_][a-z0-9]+)+)$`) // the usual one, or several words in one
	dayIn        = regexp.MustCompile(`(?i)days?(?:[-_]|$)|^(?:mon|tue|wed|thu|fri|sat|sun)[-_]|week|month|year|hour`)
)

func isCalendar(name string) bool {
	return calendarName.MatchString(name) && (!dayIn.MatchString(name) || strings.EqualFold(name, "holidays"))
}

// emailTo takes who gets e-mail from the slot that says it, if any. Several sentences may say the same.
func (d *draft) emailTo(slots []string) {
	text := strings.TrimSpace(strings.Join(slots, ""))
	if text == "" {
		return
	}
	var to any = d.now.value(text)
	if kind, name, is := strings.Cut(strings.Trim(text, "{}"), ":"); is && text[0] == '{' {
		to = map[string]any{strings.ToLower(kind): strings.TrimSpace(name)}
	} else if words := strings.Fields(text); len(words) == 4 {
		to = map[string]any{"payload": words[0]}
	} else if len(words) == 3 {
		to = map[string]any{"label": words[2]}
	}
	if !reflect.DeepEqual(d.doc["email"], to) {
		d.set("email", to)
	}
}

func (d *draft) notifyFailing(slots []string) {
	k, known := words.Ordinal(slots[1])
	if !known {
		k = countOf(slots[1])
	}
	d.mail()
	d.emailTo(slots[:1])
	d.set("failing_from", float64(k))
}

func (d *draft) notifyOwner(slots []string) {
	d.emailTo(slots[:1])
	for _, notice := range d.events(slots[1]) {
		d.notify(notice)
	}
}

func setExpression(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, map[string]any{"expr": d.now.value(slots[0])}) }
}

// vary reads a percentage. The exponent keeps it exact: 7 / 100 would not be the nearest to 0.07 for all numbers.
func (d *draft) vary(slots []string) {
	share, err := strconv.ParseFloat(slots[0]+"e-2", 64)
	if err != nil {
		d.refuse("a percentage from 0 to 100", d.found())
	}
	d.set("jitter", share)
}

func (d *draft) upToAge(slots []string) {
	table, _ := d.doc["retries"].(map[string]any)
	rows, isTable := table["by_age"].([]any)
	field := element("retries.by_age", len(rows))
	row := map[string]any{"up_to": d.duration(field+".up_to", slots[0]), "delay": d.delay(field+".delay", slots[1])}
	if d.lines["retries"] > 0 && !isTable {
		d.twice("retries", d.now.line, d.now.original())
	}
	d.doc["retries"] = map[string]any{"by_age": append(rows, any(row))}
	d.setInner("retries", field)
}

// delay reads an action that can be nothing but a delay: a retry, or a wait for the next scheduled refresh.
func (d *draft) delay(field, action string) string {
	o := &outcome{line: d.now.line, field: field}
	d.at = o
	defer d.closeBlock()
	d.act(action)
	if final, err := o.resolve(1); err != nil || final != "" {
		d.fail(errNotKnown)
	}
	return o.delay
}

// onFailure reads "second", "first and second", "first three" and "2" before what is done.
func (d *draft) onFailure(slots []string) {
	var numbers []int
	text := strings.ToLower(slots[0])
	if first := strings.TrimPrefix(text, "first "); countOf(first) > 0 {
		for k := range min(countOf(first), 1000) {
			numbers = append(numbers, k+1)
		}
		if first == text { // the only one
			numbers = numbers[len(numbers)-1:]
		}
	} else {
		for _, ordinal := range betweenAll.Split(text, -1) {
			k, known := words.Ordinal(ordinal)
			if !known {
				d.fail(errNotKnown)
				return
			}
			numbers = append(numbers, k)
		}
	}
	for _, k := range numbers {
		d.atFailure(k)
		d.act(slots[1])
	}
	d.openBlock()
}

func (d *draft) atFailure(k int) {
	if before := d.failures[k]; before != nil {
		d.refuse("one sentence about the "+words.FormatOrdinal(k)+" failure, which is in line "+number(before.line), "a second: "+d.found())
	}
	if d.ended > 0 {
		d.refuse("no failure after line "+number(d.ended)+", which says what follows the last one", d.found())
	}
	d.at = &outcome{line: d.now.line, field: element("retries", k-1), said: d.now.original()}
	d.failures[k] = d.at
}

func (d *draft) afterThat(slots []string) {
	d.closeBlock()
	d.act(slots[0])
}
