package shadow

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/schedule"
)

// logOfRule writes the runs of a rule in a zone from October 2026 to June 2027.
func logOfRule(t testing.TB, rule, zone string) string {
	s := check.Got(schedule.Parse(rule, zone, "2026-10-01"))(t)
	text := "uid,started_at,ended_at,outcome\n"
	for at, ok := s.Next(time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)); ok && at.Before(time.Date(2027, 6, 1, 0, 0, 0, 0, time.UTC)); at, ok = s.Next(at) {
		text += fmt.Sprintf("m,%s,%s,ok\n", at.Format(time.RFC3339), at.Add(time.Minute).Format(time.RFC3339))
	}
	return text
}

func TestARuleThatFitsTheOldLogBetterIsProposed(t *testing.T) {
	const both = "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0"
	const each = "FREQ=DAILY;BYHOUR=0,5,10,15,20;BYMINUTE=0;BYSECOND=0"
	for _, c := range []struct{ rule, old, want string }{
		{"0 6 1 * MON", both, both},
		{"0 6 1 * MON", "RRULE:FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=6;BYMINUTE=0\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=6;BYMINUTE=0", ""},
		{"FREQ=HOURLY;INTERVAL=5", each, each}, // the interval began anew each midnight
		{"FREQ=HOURLY;INTERVAL=5", "FREQ=HOURLY;INTERVAL=5", ""},
		{"FREQ=HOURLY;INTERVAL=2", "FREQ=DAILY;BYHOUR=0,2,4,6,8,10,12,14,16,18,20,22;BYMINUTE=0", "FREQ=DAILY;BYHOUR=0,2,4,6,8,10,12,14,16,18,20,22;BYMINUTE=0;BYSECOND=0"},
	} {
		source := defined(t, map[string]any{"rrule": c.rule, "timezone": "Europe/Berlin", "policy": map[string]any{"timeout": "10m"}})
		_, report := compared(t, logOfRule(t, c.old, "Europe/Berlin"), Options{Within: time.Minute}, map[string]Source{"m": source})
		got := ""
		for _, p := range report.Proposals {
			got += p.Rule
			failIf(t, p.UID != "m" || p.Differs != 0 || p.Differ == 0, "%s: got %+v", c.rule, p)
		}
		failIf(t, got != c.want, "%s for runs of %s: got %q, want %q", c.rule, c.old, got, c.want)
	}
}
