package english

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/schedule"
)

// lastMinutes matches the rule of the last minute of each hour of some days, or of each.
var lastMinutes = regexp.MustCompile(`^FREQ=(?:DAILY|(?:WEEKLY|HOURLY);BYDAY=([A-Z,]+))(?:;BYHOUR=([\d,]+))?;BYMINUTE=59;BYSECOND=0$`)

// setWindow reads days, hours, or both; others: those that are not named. They are those of a schedule of the last minute of each hour, as 17:00
// is no more between 9:00 and 17:00.
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
		if days := chosen(found[1], strings.Split("MO,TU,WE,TH,FR,SA,SU", ","), others); days != "" {
			window = "FREQ=WEEKLY;BYDAY=" + days
		}
		if hours := chosen(found[2], hoursOfDay, others); hours != "" {
			window += ";BYHOUR=" + hours
		}
		if window == "FREQ=DAILY" { // never
			d.fail(errNotKnown)
		}
		d.set("retry_window", window)
	}
}

var hoursOfDay = func() (all []string) {
	for hour := range 24 {
		all = append(all, strconv.Itoa(hour))
	}
	return all
}()

// chosen lists those of all that are in a list, or the others; an empty list chooses nothing.
func chosen(list string, all []string, others bool) string {
	if list == "" {
		return ""
	}
	named := strings.Split(list, ",")
	return strings.Join(slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(named, one) == others }), ",")
}
