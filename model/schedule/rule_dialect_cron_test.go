package schedule

import "testing"

func TestACronExpressionOfAnotherSchedulerIsWrittenAsItsRule(t *testing.T) {
	for _, c := range []struct {
		text       string
		both       bool
		rule, zone string
	}{
		{"*/15 6-18 * * mon-fri", true, "*/15 6-18 * * MON-FRI", ""},
		{"0 0 9 * * *", false, "0 9 * * *", ""},
		{"*/30 * * * * *", false, "FREQ=MINUTELY;BYSECOND=0,30", ""},
		{"0 5 * * * Europe/Amsterdam", false, "0 5 * * *", "Europe/Amsterdam"},
		{"TZ=UTC 0 5 ? * *", false, "0 5 * * *", "UTC"},
		{"@Daily", false, "@daily", ""},
		{"5/20 * * * *", false, "FREQ=HOURLY;BYMINUTE=5,25,45;BYSECOND=0", ""},
		{"0 9 L * *", false, "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0", ""},
		{"0 9 * * 1#2", false, "FREQ=MONTHLY;BYDAY=2MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0", ""},
		{"0 22-2 * * monday", true, "FREQ=WEEKLY;BYDAY=MO;BYHOUR=0,1,2,22,23;BYMINUTE=0;BYSECOND=0", ""},
		{"0 3 1 * 5", false, "0 3 1 * 5", ""},
		{"0 3 1 * 5", true, "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=FR;BYHOUR=3;BYMINUTE=0;BYSECOND=0", ""},
		{"0 3 */7 * 1", false, "RRULE:FREQ=MONTHLY;BYMONTHDAY=1,8,15,22,29;BYHOUR=3;BYMINUTE=0;BYSECOND=0\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=3;BYMINUTE=0;BYSECOND=0", ""},
	} {
		if rule, zone, ok := FromCron(c.text, c.both); !ok || rule != c.rule || zone != c.zone {
			t.Errorf("%q: expected %q in %q, found %q in %q", c.text, c.rule, c.zone, rule, zone)
		}
	}
	for _, text := range []string{"", " ", "every 90 minutes", "@reboot", "H 3 * * *", "0 25 * * *", "0 9 * *", "0 0 30 2 *", "0 6 * * * /bin/a"} {
		rule, _, ok := FromCron(text, false)
		failIf(t, ok, "%q: expected no rule, found %q", text, rule)
	}
}
