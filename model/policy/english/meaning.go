package english

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

// The meanings of the forms. Each function takes the slots of its form.

func set(field string, value any) func(*draft, []string) {
	return func(d *draft, _ []string) { d.set(field, value) }
}

func setValue(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, d.now.value(slots[0])) }
}

// setDuration sets a length of time; a form without one says that there is none.
func setDuration(field string) func(*draft, []string) {
	return func(d *draft, slots []string) {
		if text := strings.Join(slots, ""); text != "" {
			d.set(field, d.duration(field, text))
		} else {
			d.set(field, "none")
		}
	}
}

// calendars reads names of calendars. They need to be like one where no word says that they are.
func (d *draft) calendars(slots []string) {
	var names []any
	for _, name := range betweenAll.Split(slots[1], -1) {
		d.refuseIf(slots[0] == "" && name[0] != '"' && !isCalendar(name), `"holidays", a name in quotes, or "the calendar" before it`, document.Found(name))
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
	if found := inPayload.FindStringSubmatch(text); found != nil {
		to = map[string]any{"payload": strings.Join(found[1:], "")}
	} else if found := inLabel.FindStringSubmatch(text); found != nil {
		to = map[string]any{"label": strings.Join(found[1:], "")}
	}
	d.agree("email", to)
}

var (
	inPayload = regexp.MustCompile(`(?i)^\{payload: ?(.+)\}$|payload field (\S+)$|(\S+) (?:of|in|from) (?:the|its) payload$`)
	inLabel   = regexp.MustCompile(`(?i)^\{label: ?(.+)\}$|label (\S+)$`)
)

func (d *draft) notifyFailing(slots []string) {
	k, known := words.Ordinal(slots[0])
	if !known {
		k = countOf(slots[0])
	}
	d.mail()
	d.emailTo(slots[1:])
	d.set("failing_from", float64(k))
}

func (d *draft) notifyOwner(slots []string) {
	d.emailTo(slots[1:])
	for _, notice := range d.events(slots[0]) {
		d.notify(notice)
	}
}

func setExpression(field string) func(*draft, []string) {
	return func(d *draft, slots []string) { d.set(field, map[string]any{"expr": d.now.value(slots[0])}) }
}

// vary reads a percentage. The exponent keeps it exact: 7 / 100 would not be the nearest to 0.07 for all numbers.
func (d *draft) vary(slots []string) {
	share, err := strconv.ParseFloat(slots[0]+"e-2", 64)
	d.refuseIf(err != nil, "a percentage from 0 to 100", d.found())
	d.set("jitter", share)
}

func (d *draft) upToAge(slots []string) {
	table, _ := d.doc["retries"].(map[string]any)
	rows, isTable := table["by_age"].([]any)
	field := element("retries.by_age", len(rows))
	row := map[string]any{"up_to": d.duration(field+".up_to", slots[0]), "delay": d.delay(field+".delay", slots[1])}
	if !isTable {
		d.once("retries", d.lines["retries"])
	}
	d.doc["retries"] = map[string]any{"by_age": append(rows, any(row))}
	d.setInner("retries", field)
}

func (d *draft) afterThat(slots []string) {
	d.closeBlock()
	d.mustKnow(d.act(slots[0]))
}

var (
	inTheZone = regexp.MustCompile(`(?i)^(.+?),? (?:in the time ?zone ("\d+"|\S+)|\(([a-z][\w+/-]*)\))$`)
	byTheRule = regexp.MustCompile(`(?i)^(?:by the rule (.+)|(?:by )?([^ "]*FREQ=.+))$`)
)

// cutSubject returns the rest behind the subject of a sentence. The subject may be the name that the policy has by now.
func (d *draft) cutSubject(text string) string {
	name, _ := d.doc["name"].(string)
	return strings.Join(words.CutSubject(strings.Fields(text), name), " ")
}

func (d *draft) schedule(text string) {
	if zone := inTheZone.FindStringSubmatch(text); zone != nil {
		d.set("timezone", d.now.value(zone[2]+zone[3]))
		text = zone[1]
	}
	if rule := byTheRule.FindStringSubmatch(text); rule != nil {
		d.set("rrule", d.now.restore(rule[1]+rule[2], asItIs))
		return
	}
	if namesMore.MatchString(text) { // "the sales report every day"
		text = "refresh " + text
	}
	read, err := schedule.Read(d.now.restore(text, asItIs))
	d.fail(d.place(err, "rrule"))
	for _, given := range [][2]string{{"timezone", read.Timezone}, {"dtstart", read.Dtstart}} {
		if given[1] != "" {
			d.set(given[0], given[1])
		}
	}
	d.spread = document.FormatDuration(read.Spread)
	d.set("rrule", read.Rule)
}

func (d *draft) alsoByRule(slots []string) {
	rule, found := d.doc["rrule"].(string)
	d.refuseIf(!found, `a sentence such as "Refresh the model by the rule FREQ=DAILY" before it`, d.found())
	d.doc["rrule"] = rule + "\n" + d.now.restore(slots[0], asItIs)
}

func (d *draft) request(slots []string) {
	switch rest := d.cutSubject(slots[0]); rest {
	case "":
	case slots[0]:
		d.fail(errNotKnown)
	default:
		d.schedule(rest)
	}
}

var namesMore = regexp.MustCompile(`(?i)^(?:the|our|my|all) `)

var lastMinutes = regexp.MustCompile(`^FREQ=(?:DAILY|(?:WEEKLY|HOURLY);BYDAY=([A-Z,]+))(?:;BYHOUR=([\d,]+))?;BYMINUTE=59;BYSECOND=0$`)

// setWindow reads days, hours, or both; others: the unnamed ones. Windows differ in the last minute of an hour: 17:00 ends "between 9:00
// and 17:00". The first minute matters as much only in a window of whole hours.
func setWindow(others bool) func(*draft, []string) {
	return func(d *draft, slots []string) {
		text := strings.ToLower(slots[0])
		if zone := inTheZone.FindStringSubmatch(text); zone != nil {
			d.set("timezone", d.now.value(slots[0][len(text)-len(zone[2]+zone[3]):]))
			text = zone[1]
		}
		text = afterHour.ReplaceAllString(strings.Replace(orDay.ReplaceAllString(text, "$1 and "), "before ", "between midnight and ", 1), "between $1 and midnight")
		rule, err := schedule.RuleText("every hour at :59 " + text)
		again, _ := schedule.RuleText("every hour at :01 " + text)
		found := lastMinutes.FindStringSubmatch(rule)
		if err != nil || found == nil || again != strings.Replace(rule, "BYMINUTE=59", "BYMINUTE=1", 1) || others && found[1] != "" && found[2] != "" { // which other hours, of which days?
			d.fail(errNotKnown)
			return
		}
		window := "FREQ=DAILY"
		if days := chosen(found[1], "MO,TU,WE,TH,FR,SA,SU", others); days != "" {
			window = "FREQ=WEEKLY;BYDAY=" + days
		}
		if hours := chosen(found[2], "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23", others); hours != "" {
			window += ";BYHOUR=" + hours
		}
		d.mustKnow(window != "FREQ=DAILY") // never
		d.set("retry_window", window)
	}
}

var orDay = regexp.MustCompile(`(days?) or (?:on )?\b`)

var afterHour = regexp.MustCompile(`\bafter (\d{1,2}(?::00)?(?: ?[ap]\.?m\b\.?)?|noon)`)

func chosen(list, all string, others bool) string {
	if list == "" {
		return ""
	}
	named := strings.Split(list, ",")
	return strings.Join(slices.DeleteFunc(strings.Split(all, ","), func(one string) bool { return slices.Contains(named, one) == others }), ",")
}

// align says how retries and the schedule go together. Several sentences may say the same.
func align(alignment policy.Alignment) func(*draft, []string) {
	return func(d *draft, _ []string) { d.agree("alignment", string(alignment)) }
}
