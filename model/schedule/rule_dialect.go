package schedule

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// dialect is a schedule as another program would read it. It says what to write instead of a refused text, and never which meaning we give it.
type dialect struct {
	differs        string    // how it differs from other readings; empty: in nothing
	fields         [5]string // in the order of cron, in capital letters
	seconds, years string    // empty: 0, and all
	sunday         int       // its number
	both           bool      // a day must fit the day of month and the day of week
	alone          bool      // 5/15 is 5, and not 5, 20, 35 and 50

	wrong  bool          // nobody reads it so
	loose  bool          // it was read in a way in which we do not read
	spread time.Duration // over which an H leaves to each model when
}

var (
	wrapped   = regexp.MustCompile(`(?i)^(cron|rate) ?\((.+)\)$`)
	zoneFirst = regexp.MustCompile(`(?i)^(?:CRON_)?TZ=(\S+)$`)
	cronToken = regexp.MustCompile(`(?i)^(?:[\d*/,?LWH#~()+-]|(?:SUN|MON|TUES?|WED(?:NES)?|THU(?:RS?)?|FRI|SAT(?:UR)?)(?:DAY)?|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)+$`)
	startStep = regexp.MustCompile(`(?:^|[ ,])\d+/`)
	tooLong   = regexp.MustCompile(`^(?:\*/([6-9]\d|\d{3,}) \*|0 \*/(2[4-9]|[3-9]\d|\d{3,})) \* \* \*$`)
	onDate    = regexp.MustCompile(`^(?:([\d*.]+)-)?([\d*,./]+)([-~])([\d*,./]+)$`)
)

// maxAdvised bounds the fields that are looked at in all readings, in bytes.
const maxAdvised = 300

// foreignNicknames have a meaning in some schedulers.
var foreignNicknames = map[string]string{
	"@minutely": "* * * * *", "@every_minute": "* * * * *", "@weekdays": "0 0 * * MON-FRI", "@weekends": "0 0 * * SAT,SUN", "@noon": "0 12 * * *",
}

// advise says what to write instead of a text that is refused: each reading that other schedulers have of it, in quotes. Empty: nothing is known.
func advise(text string) string {
	text = strings.TrimSpace(text)
	found := wrapped.FindStringSubmatch(text)
	if found != nil {
		text = found[2]
	}
	if found != nil && strings.EqualFold(found[1], "rate") {
		return "; write " + strconv.Quote("every "+strings.TrimPrefix(text, "1 "))
	}
	fields, zone, note := peel(strings.Fields(text))
	var rules, offers []string
	for _, d := range readings(fields, found != nil) {
		rule, ok := d.offer()
		if !ok || slices.Contains(rules, rule) {
			continue
		}
		offer := strconv.Quote(rule)
		if zone != "" {
			offer += " with timezone " + strconv.Quote(zone)
		}
		if d.spread > 0 {
			offer += " in a policy with spread: " + document.FormatDuration(d.spread)
		}
		if d.differs != "" {
			offer += " (" + strings.TrimPrefix(d.differs, ", ") + ")"
		}
		rules, offers = append(rules, rule), append(offers, offer)
	}
	if found := tooLong.FindStringSubmatch(strings.Join(fields, " ")); found != nil && offers != nil {
		unit := map[bool]string{true: " minutes", false: " hours"}[found[2] == ""]
		offers = append(offers, strconv.Quote("every "+found[1]+found[2]+unit)+" (elapsed time, which fields cannot count)")
	}
	if offers == nil {
		return note
	}
	return "; write " + strings.Join(offers, ", or ") + note
}

// peel takes the zone from the beginning or the end, and a command with its user from the end.
func peel(fields []string) (rest []string, zone, note string) {
	if found := zoneFirst.FindStringSubmatch(fields[0]); found != nil && len(fields) > 1 && existing(strings.Trim(found[1], `"'`)) != "" {
		fields, zone = fields[1:], strings.Trim(found[1], `"'`)
	}
	if last := len(fields) - 1; last > 0 && zone == "" && zoneOf(fields[last], false) != "" {
		fields, zone = fields[:last], fields[last]
	}
	end := slices.IndexFunc(fields, func(field string) bool { return !cronToken.MatchString(field) })
	nickname := fields[0][0] == '@'
	if nickname {
		end = 1
	}
	if end >= len(cronFields) || nickname && len(fields) > 1 {
		fields, note = fields[:end], "; behind the times is a command, perhaps after its user: that is for a worker"
	}
	if n := len(strings.Join(fields, " ")); n > maxAdvised {
		return nil, "", note
	}
	if len(fields) > len(cronFields) && (end < 0 || end >= len(cronFields)) {
		note += "; Quartz, Spring and croner have the seconds first, croniter and rq last; 1 is Sunday in Quartz and AWS, 0 is Monday in APScheduler"
	}
	return fields, zone, note
}

// readings are the ones of nicknames, of five, six and seven fields, and of systemd. aws: nobody else writes so.
func readings(fields []string, aws bool) (all []dialect) {
	take := func(differs, seconds, years string, sunday int, five []string) {
		all = append(all, dialect{differs: differs, fields: [5]string(five), seconds: seconds, years: years, sunday: sunday}.variants()...)
	}
	switch f := strings.Fields(strings.ToUpper(strings.Join(fields, " "))); len(f) {
	case 1:
		name := strings.ToLower(f[0])
		if text := cmp.Or(foreignNicknames[name], cronNicknames[name]); text != "" {
			take("", "", "", 0, strings.Fields(text))
		}
	case 5:
		take("", "", "", 0, f)
	case 6:
		if !aws {
			take("field 1 is the seconds", f[0], "", 0, f[1:])
			take("field 1 is the seconds, and 1 is Sunday", f[0], "", 1, f[1:])
			if !slices.Contains(f, "?") { // those who write so have seconds first
				take("field 6 is the seconds", f[5], "", 0, f[:5])
			}
			take("field 6 is the year", "", f[5], 0, f[:5])
		}
		take("field 6 is the year, and 1 is Sunday", "", f[5], 1, f[:5])
	case 7:
		take("field 1 is the seconds, field 7 the year", f[0], f[6], 0, f[1:6])
		take("field 1 is the seconds, field 7 the year, and 1 is Sunday", f[0], f[6], 1, f[1:6])
		take("field 6 is the seconds, field 7 the year", f[5], f[6], 0, f[:5])
	}
	return append(all, onCalendar(fields))
}

func star(field string) bool { return field == "*" || field == "*/1" || field == "?" }

// variants differ where one scheduler reads the same fields otherwise than another.
func (d dialect) variants() []dialect {
	all := []dialect{d}
	split := func(one, other string, change func(*dialect)) {
		for i := range all {
			second := all[i]
			change(&second)
			all[i].differs, second.differs = all[i].differs+", "+one, second.differs+", "+other
			all = append(all, second)
		}
	}
	if d.seconds+d.years == "" && startStep.MatchString(strings.Join(d.fields[:], " ")) {
		split("stepping on from the first number", "at that number alone, as in busybox and systemd-cron", func(d *dialect) { d.alone = true })
	}
	if !star(d.fields[2]) && !star(d.fields[4]) && d.fields[4][0] != '+' {
		split("on either kind of day", "on days that are both", func(d *dialect) { d.both = true })
	}
	return all
}

// onCalendar is the reading of systemd: weekdays, a date and a time of day; all must hold.
func onCalendar(fields []string) dialect {
	d := dialect{fields: [5]string{"0", "0", "*", "*", "*"}, both: true, wrong: len(fields) == 0}
	for i, field := range fields {
		field = strings.ToUpper(field)
		date, clock := onDate.FindStringSubmatch(field), strings.Split(field, ":")
		switch {
		case date != nil:
			d.years, d.fields[3], d.fields[2] = date[1], date[2], date[4]
			if n, err := strconv.Atoi(date[4]); date[3] == "~" {
				d.fields[2] = strings.TrimSuffix("L-"+strconv.Itoa(n-1), "-0")
				d.wrong = d.wrong || err != nil
			}
		case len(clock) == 2, len(clock) == 3:
			d.fields[1], d.fields[0], d.seconds = clock[0], clock[1], strings.Join(clock[2:], "")
		case i > 0 || len(fields) == 1:
			d.wrong = true
		default:
			d.fields[4] = field
		}
	}
	for _, text := range []*string{&d.seconds, &d.years, &d.fields[0], &d.fields[1], &d.fields[2], &d.fields[3], &d.fields[4]} {
		*text = strings.ReplaceAll(*text, "..", "-")
	}
	return d
}

// calendarNames are short for a calendar of systemd. A week begins with Monday there.
var calendarNames = map[string]string{
	"minutely": "*:*", "hourly": "*:00", "daily": "00:00", "weekly": "Mon 00:00", "monthly": "*-01 00:00", "yearly": "01-01 00:00", "annually": "01-01 00:00",
	"quarterly": "01,04,07,10-01 00:00", "semiannually": "01,07-01 00:00",
}

// FromCalendar writes a calendar of systemd such as "Mon..Fri 09:00 Europe/Berlin" as a rule, with its zone; empty: it names none. ok is false if
// it is no calendar, never occurs, or has no rule.
func FromCalendar(text string) (rule, zone string, ok bool) {
	fields := strings.Fields(text)
	if last := len(fields) - 1; last > 0 && zoneOf(fields[last], false) != "" {
		fields, zone = fields[:last], fields[last]
	}
	if name := calendarNames[strings.ToLower(strings.Join(fields, " "))]; name != "" {
		fields = strings.Fields(name)
	}
	d := onCalendar(fields)
	rule, ok = d.offer()
	return rule, zone, ok
}

// FromCron writes the cron expression of another scheduler as a rule, with its zone, which may stand at either end; empty: it names none. Six fields
// have the seconds first, 5/20 goes on from 5, and days must fit both of their fields if both is true, or else one. ok is false if it never occurs,
// or has no rule.
func FromCron(text string, both bool) (rule, zone string, ok bool) {
	all := strings.Fields(text)
	if len(all) == 0 {
		return "", "", false
	}
	fields, zone, _ := peel(all)
	five, seconds := strings.Fields(strings.ToUpper(strings.Join(fields, " "))), ""
	if name := strings.ToLower(all[0]); len(five) == 1 && cronNicknames[name] != "" {
		return name, zone, len(all) == 1
	}
	if len(five) == len(cronFields)+1 {
		seconds, five = five[0], five[1:]
	}
	if cut := len(all) - len(fields); len(five) != len(cronFields) || cut > 1 || cut == 1 && zone == "" { // a command was cut, too
		return "", zone, false
	}
	d := dialect{fields: [5]string(five), seconds: seconds, both: both && !star(five[2]) && !star(five[4])}
	rule, ok = d.offer()
	return rule, zone, ok && d.spread == 0
}
