package shadow

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/preview/simulate"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

func TestTheLogOfCronIsReadByTheCommandsOfTheModels(t *testing.T) {
	berlin := check.Got(time.LoadLocation("Europe/Berlin"))(t)
	log := logOf(berlin)
	log.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	log.Commands.Written = func(command string) string { return map[string]string{"sleep 9; feeds": "feeds"}[command] }
	for _, fields := range []map[string]any{
		{"uid": "feeds", "rrule": "0 6 * * *", "payload": map[string]any{"command": "feeds"}},
		{"uid": "tick@7", "rrule": "0 7 * * *", "timezone": "Europe/Berlin", "payload": map[string]any{"command": "tick (a)"}},
		{"uid": "tick@8", "rrule": "0 8 * * *", "timezone": "Europe/Berlin", "payload": map[string]any{"command": "tick (a)"}},
		{"uid": "ann", "rrule": "0 7 * * *", "payload": map[string]any{"command": "für\tx\x7f"}, "labels": map[string]any{"user": "ann"}},
		{"uid": "bob", "rrule": "0 7 * * *", "payload": map[string]any{"command": "für\tx\x7f"}, "labels": map[string]any{"user": "bob"}},
		{"uid": "other"},
	} {
		fields["policy"] = map[string]any{"timeout": "1h"}
		d := check.Got(model.ParseDefinition(fields))(t)
		log.Commands.Add(d.UID, d.Payload, d.Labels, func(at time.Time) (*model.Model, error) { return simulate.NewModel(d, *d.Inline, at) })
	}
	runs, refused := read(t, log, `-- Logs begin at Mon 2026-10-05 00:00:00 CEST. --
Oct  5 05:59:59 host systemd[1]: Started Session 7 of User root.
Oct  5 06:00:01 host CRON[4711]: (root) CMD (feeds)
Oct  5 06:00:01 host CRON[4710]: pam_unix(cron:session): session opened for user root(uid=0)
Oct  5 06:30:01 host CRON[4711]: (ann) CMD (sleep 9; feeds)
2026-10-05T07:00:02.123456+02:00 host CRON[4712]: (root) CMD (tick (a))
2026-10-05T08:00:02+0200 host crond[4712]: (root) CMD (tick (a))
2026-10-05T09:00:02+02:00 host CRON[4712]: (root) CMD (tick (a))
2026-10-05T09:00:03+02:00 host CRON[4713]: (root) CMD (unknown thing)
-- Boot 0123456789abcdef --
2026-10-05T09:01:03+02:00 host CROND[4714]: (ann) CMD (f\303\274r^Ix^?)
2026-10-05T09:02:03+02:00 host /usr/sbin/cron[4715]: (bob) CMD (f\303\274r^Ix^?)
2026-10-05T09:03:03+02:00 host /USR/SBIN/CRON[4716]: (eve) CMD (für	x`+"\x7f"+`)
2026-10-05T25:00:03+02:00 host CRON[4713]: (root) CMD (feeds)
`)
	equal(t, []string{"3 feeds 05T04:00:01 0s ", "5 feeds 05T04:30:01 0s ", "6 tick@7 05T05:00:02 0s ", "7 tick@8 05T06:00:02 0s ", "8 tick@8 05T07:00:02 0s ",
		"9 unknown thing 05T07:00:03 0s ", "11 ann 05T07:01:03 0s ", "12 bob 05T07:02:03 0s ", "13 bob 05T07:03:03 0s "}, runs)
	failIf(t, len(refused) != 1, "expected the time of line 14 to be refused, found %q", refused)

	log.Now = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC) // such a day is of last year
	if found := check.Got(log.cron("Oct  5 06:00:01 host CRON[4711]: (root) CMD (feeds)"))(t); found[0].At.Year() != 2025 {
		t.Errorf("expected a run of 2025, found %s", found[0].At)
	}
}

func TestATimeOfALogOfCronThatOccursTwiceIsInDoubtUnlessItHasAnOffset(t *testing.T) {
	log := logOf(check.Got(time.LoadLocation("Europe/Berlin"))(t))
	log.Now, log.Commands.Written = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), func(command string) string { return command }
	for line, want := range map[string]time.Duration{"Oct 25 02:30:01": time.Hour, "2026-10-25T02:30:01": time.Hour, "2026-10-25T02:30:01+01:00": 0, "Oct 25 04:30:01": 0} {
		runs := check.Got(log.cron(line + " host CRON[1]: (root) CMD (a)"))(t)
		failIf(t, runs[0].Again != want, "%s: expected %s, found %+v", line, want, runs)
	}
}
