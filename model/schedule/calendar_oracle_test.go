package schedule

import (
	"cmp"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

func TestACalendarOfSystemdOccursWhenSystemdSaysSo(t *testing.T) {
	testkit.RequireProgram(t, "systemd-analyze", "systemd")
	elapse := regexp.MustCompile(`(?m)(?:Next elapse|Iter\. #\d+): \w+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$`)
	for _, text := range []string{
		"daily", "hourly", "weekly", "monthly", "yearly", "quarterly", "semiannually", "minutely", "Mon..Fri 09:00", "Sat,Sun 20:00", "*:0/15", "*-*-* 06,18:00:00", "*-*-* 00/2:30",
		"Sat *-*-1..7 18:00:00", "*-02-29 12:00", "Mon *-05~07 00:00", "*-*~01 23:30", "10:30", "*-*-01,15 04:05:06", "Tue,Thu *-*-* 7:10", "Monday 5:00", "2027-*-* 00:00", "2027-03-04 05:06:07", "*:*:00/20",
		"*-*-* 07..23:30", "*-*-* *:05,35:00", "Sun *-*-1..7 1:00:00", "00:07:00", "*:00/10", "*-*-* 23:59:40", "*-*-1 06:52:00", "Mon *-*-* 06:47:00", "Sun *-*-* 03:10:00", "*-*-* 00,12:00:00", "*-*-* *:17:00",
	} {
		rule, zone, ok := FromCalendar(text)
		if !ok || zone != "" {
			t.Errorf("%s: expected a rule, found none", text)
			continue
		}
		read := check.Got(Read(rule))(t)
		s := check.Got(Parse(read.Rule, "", cmp.Or(read.Dtstart, "2026-12-01T00:00:00")))(t)
		after := time.Date(2026, 12, 1, 0, 0, 30, 0, time.UTC)
		out := check.Got(exec.Command("systemd-analyze", "calendar", "--iterations=8", "--base-time="+after.Format("2006-01-02 15:04:05 MST"), text).Output())(t)
		var want, got []string
		for _, found := range elapse.FindAllStringSubmatch(string(out), -1) {
			want = append(want, found[1])
			next, _ := s.Next(after)
			got, after = append(got, next.Format(time.DateTime)), next
		}
		if strings.Join(got, ",") != strings.Join(want, ",") || len(want) == 0 {
			t.Errorf("%s is %s: systemd elapses at %v, the rule occurs at %v", text, rule, want, got)
		}
	}
	for _, text := range []string{"", "now", "Mon Tue", "25:00", "every day"} {
		_, _, ok := FromCalendar(text)
		check.FailIf(t, ok, "expected %q to be no calendar", text)
	}
	rule, zone, ok := FromCalendar("Mon..Fri 09:00 Europe/Berlin")
	check.FailIf(t, !ok || zone != "Europe/Berlin" || !strings.HasPrefix(rule, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9"), "expected a zone, found %q and %q", rule, zone)
}
