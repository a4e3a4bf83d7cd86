package english

import (
	"regexp"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/words"
)

var (
	inTheZone = regexp.MustCompile(`(?i)^(.+?),? (?:in the time ?zone ("\d+"|\S+)|\(([a-z][\w+/-]*)\))$`)
	byTheRule = regexp.MustCompile(`(?i)^(?:by the rule (.+)|(?:by )?([^ "]*FREQ=.+))$`)
)

// cutSubject returns what is said of the subject of a sentence, which may have the name that the policy has by now.
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
		d.set("rrule", d.now.restore(rule[1]+rule[2]))
		return
	}
	read, err := schedule.Read(d.now.restore(text))
	d.fail(d.place(err, "rrule"))
	for _, said := range [][2]string{{"timezone", read.Timezone}, {"dtstart", read.Dtstart}} {
		if said[1] != "" {
			d.set(said[0], said[1])
		}
	}
	d.spread = document.FormatDuration(read.Spread)
	d.set("rrule", read.Rule)
}

var lastMinutes = regexp.MustCompile(`^FREQ=(?:DAILY|(?:WEEKLY|HOURLY);BYDAY=([A-Z,]+))(?:;BYHOUR=([\d,]+))?;BYMINUTE=59;BYSECOND=0$`)

// setWindow reads days, hours, or both; others: those that are not named. The last minute of each hour tells: 17:00 ends "between 9:00 and 17:00".
func setWindow(others bool) func(*draft, []string) {
	return func(d *draft, slots []string) {
		text := strings.Replace(strings.ToLower(slots[0]), "before ", "between midnight and ", 1)
		rule, err := schedule.RuleText("every hour at :59 " + text)
		found := lastMinutes.FindStringSubmatch(rule)
		if err != nil || found == nil || others && found[1] != "" && found[2] != "" { // which other hours, of which days?
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
		if window == "FREQ=DAILY" { // never
			d.fail(errNotKnown)
		}
		d.set("retry_window", window)
	}
}

func chosen(list, all string, others bool) string {
	if list == "" {
		return ""
	}
	named := strings.Split(list, ",")
	return strings.Join(slices.DeleteFunc(strings.Split(all, ","), func(one string) bool { return slices.Contains(named, one) == others }), ",")
}
