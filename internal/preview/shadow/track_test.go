package shadow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runs writes a log of one model: "day time minutes outcome" each, in October 2026.
func runs(lines ...string) string {
	text := "uid,started_at,ended_at,outcome\n"
	for _, line := range lines {
		var day, minutes int
		var clock, outcome string
		if n, err := fmt.Sscan(line, &day, &clock, &minutes, &outcome); n != 4 {
			panic(err)
		}
		at, err := time.Parse("2006-01-02 15:04", fmt.Sprintf("2026-10-%02d %s", day, clock))
		if err != nil {
			panic(err)
		}
		text += "m," + at.Format(time.RFC3339) + "," + at.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339) + "," + outcome + "\n"
	}
	return text
}

func TestWhereOldAndNewDisagreeIsToldOnceAndByItsKind(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want []string
	}{
		"they agree": {runs("5 06:00 3 ok", "5 16:00 3 ok", "6 06:00 3 ok"), nil},
		"the old one retries as we do": {
			runs("5 06:00 3 failed", "5 06:03 3 failed", "5 06:07 2 ok", "5 16:00 3 ok"), nil},
		"it was late once":  {runs("5 06:00 3 ok", "5 16:25 3 ok", "6 06:00 3 ok"), []string{"earlier m old 05 16:25 ours 05 16:00 by 25m0s"}},
		"it was early once": {runs("5 06:00 3 ok", "5 15:35 3 ok", "6 06:00 3 ok"), []string{"later m old 05 15:35 ours 05 16:00 by 25m0s"}},
		"it is an hour early from a day on, and retries after it as we do": {
			runs("5 06:00 3 ok", "5 15:00 3 failed", "5 15:03 1 ok", "6 05:00 3 ok"),
			[]string{"later m old 05 15:00 ours 05 16:00 by 1h0m0s", "later m old 06 05:00 ours 06 06:00 by 1h0m0s"}},
		"it missed a planned refresh": {runs("5 06:00 3 ok", "6 06:00 3 ok"), []string{"missed m ours 05 16:00"}},
		"it missed some days":         {runs("5 06:00 3 ok", "7 06:00 3 ok"), []string{"missed m ours 05 16:00", "missed m ours 06 06:00", "missed m ours 06 16:00"}},
		"it does not retry":           {runs("5 06:00 3 failed", "5 16:00 3 ok"), []string{"not_retried m ours 05 06:03"}},
		"it retries later":            {runs("5 06:00 3 failed", "5 06:23 3 ok", "5 16:00 1 ok"), []string{"earlier m old 05 06:23 ours 05 06:03 by 20m0s"}},
		"it ran by hand":              {runs("5 06:00 3 ok", "5 10:00 3 ok", "5 16:00 3 ok"), []string{"unplanned m old 05 10:00 ours 05 16:00"}},
		"it ran by hand and missed a planned refresh": {
			runs("5 06:00 3 ok", "5 07:00 3 ok", "6 06:00 3 ok"), []string{"unplanned m old 05 07:00 ours 05 16:00", "missed m ours 05 16:00"}},
		"two machines ran it": {
			runs("5 06:00 9 ok", "5 06:00 9 ok", "5 16:00 3 ok"), []string{"twice m old 05 06:00"}},
		"it ran while it still ran": {
			runs("5 06:00 9 ok", "5 06:05 9 ok", "5 16:00 3 ok"), []string{"twice m old 05 06:05 by 5m0s"}},
		"two machines ran it an hour early": {
			runs("5 06:00 1 ok", "5 15:00 9 ok", "5 15:01 9 ok", "6 06:00 1 ok"),
			[]string{"later m old 05 15:00 ours 05 16:00 by 1h0m0s", "twice m old 05 15:01 by 1m0s"}},
		"it goes on after we have given up": {
			runs("5 06:00 1 failed", "5 06:01 1 failed", "5 06:03 1 failed", "5 06:09 1 failed", "5 16:00 1 ok", "6 06:00 1 ok"),
			[]string{"gave_up m old 05 16:00"}},
		"it ran for too long": {runs("5 06:00 75 ok", "5 16:00 3 ok"), []string{"too_long m old 05 06:00 by 15m0s"}},
		"an answer was lost, and the old one waits for the planned refresh": {
			runs("5 06:00 0 lost", "5 16:00 3 ok"), []string{"not_retried m ours 05 07:00"}},
		"the first one was late": {runs("5 06:20 3 ok", "5 16:00 3 ok"), []string{"earlier m old 05 06:20 ours 05 06:00 by 20m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			told, _ := compared(t, test.log, Options{Within: time.Minute}, map[string]Source{"m": atSixAndFour(t)})
			equal(t, test.want, told)
		})
	}
}

func TestARetryIsComparedWithoutTheJitterOfItsPolicy(t *testing.T) {
	spread := defined(t, map[string]any{"rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0", "policy": map[string]any{
		"timeout": "50m", "retries": map[string]any{"strategy": "fixed", "base": "1h", "count": 3}, "jitter": 0.9, "on_exhausted": "next_planned"}})
	told, _ := compared(t, runs("5 06:00 20 failed", "5 07:20 20 failed", "5 08:40 5 ok"), Options{Within: time.Second}, map[string]Source{"m": spread})
	failIf(t, told != nil, "expected each retry where the policy has it, found %q", told)
}

func TestARetryThatWeWouldLeaveToThePlannedRefreshIsTold(t *testing.T) {
	hourly := defined(t, map[string]any{"rrule": "FREQ=HOURLY", "policy": map[string]any{
		"timeout": "50m", "retries": []any{"5m", "10m"}, "on_exhausted": "next_planned"}})
	told, report := compared(t, runs("5 06:00 20 failed", "5 06:25 5 ok", "5 07:00 5 ok"), Options{Within: time.Minute}, map[string]Source{"m": hourly})
	equal(t, []string{"retried m old 05 06:25 ours 05 07:00 by 35m0s"}, told)
	failIf(t, report.Agreed != 2 || report.Totals[0].Most.Line != 3, "expected two runs that agree, and the line of the other, found %+v", report)
}

func TestWhatBelongsToNoModelAndWhatCannotBeReadIsToldWithItsLine(t *testing.T) {
	text := runs("5 06:00 3 ok", "5 16:00 3 ok") + "n,2026-10-05T06:00:00Z,,\nm,yesterday,,\nm,2026-10-05T09:00:00Z,,\n\"m,,,\n"
	told, report := compared(t, text, Options{Within: time.Minute}, map[string]Source{"m": atSixAndFour(t)})
	equal(t, []string{"unknown n old 05 06:00", "unreadable", "unreadable", "unreadable"}, told)
	want := []KindTotals{{Kind: Unknown, Count: 1, Most: Difference{Type: "difference", Kind: Unknown, Line: 4, UID: "n", Old: time.Date(2026, 10, 5, 6, 0, 0, 0, time.UTC)}}}
	diff := cmp.Diff(want, report.Totals[:1])
	failIf(t, diff != "" || report.Totals[1].Count != 3 || report.Totals[1].Most.Line != 5, "-want +got\n%s, %+v", diff, report.Totals)
}

func TestFromAndUntilSayWhatIsCompared(t *testing.T) {
	text := runs("5 06:00 3 ok", "5 16:00 3 ok", "6 16:00 3 ok")
	from, until := time.Date(2026, 10, 4, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 6, 12, 0, 0, 0, time.UTC)
	told, report := compared(t, text, Options{Within: time.Minute, From: from, To: until}, map[string]Source{"m": atSixAndFour(t), "n": atSixAndFour(t)})
	want := []string{"missed m ours 04 16:00", "missed m ours 06 06:00", "missed n ours 04 16:00", "missed n ours 05 06:00", "missed n ours 05 16:00", "missed n ours 06 06:00"}
	diff := cmp.Diff(want, told)
	failIf(t, diff != "" || report.NoRuns != 1 || report.Runs != 2, "-want +got\n%s, %+v", diff, report)
}

func TestAModelWithoutAScheduleIsComparedByItsRetriesAlone(t *testing.T) {
	once := defined(t, map[string]any{"policy": map[string]any{"timeout": "1m", "retries": []any{"1m", "5m"}, "on_exhausted": "give_up"}})
	told, report := compared(t, runs("5 06:10 1 failed", "5 06:40 1 ok", "6 09:00 1 ok"), Options{Within: time.Minute}, map[string]Source{"m": once})
	diff := cmp.Diff([]string{"earlier m old 05 06:40 ours 05 06:12 by 28m0s"}, told)
	failIf(t, diff != "" || report.Unjudged != 2, "-want +got\n%s, %+v", diff, report)
}

func TestMinutesApartStillDifferForAModelOfEachMinute(t *testing.T) {
	minutely := defined(t, map[string]any{"rrule": "FREQ=MINUTELY", "policy": map[string]any{"timeout": "30s"}})
	told, _ := compared(t, runs("5 06:00 0 ok", "5 06:01 0 ok", "5 06:03 0 ok"), Options{Within: time.Hour}, map[string]Source{"m": minutely})
	equal(t, []string{"missed m ours 05 06:02"}, told)
}

func FuzzCompare(f *testing.F) {
	f.Add(runs("5 06:00 3 ok", "5 16:00 3 failed", "6 06:00 3 lost"))
	f.Add("uid;started_at\nm;1791180000\nm;1791180000000\n")
	f.Add(`{"uid":"m","started_at":"2026-10-05T06:00:00Z","outcome":"error"}` + "\n{")
	f.Add("OK\n1791180000.123456 [0 127.0.0.1:5000] \"RPUSH\" \"bigtables-input\" \"{\\\"big_table_uid\\\":\\\"m\\\",\\\"refresh_attempt_uid\\\":\\\"a\\\"}\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		c := New(Options{Within: time.Minute, From: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
		c.Define("m", atSixAndFour(t))
		if err := logOf(time.UTC).Read(strings.NewReader(text), c.Take, c.Refuse); err != nil {
			return
		}
		report, err := c.End()
		must(t, err)
		stopIf(t, report.Agreed > report.Runs, "expected at most %d runs to agree, found %d", report.Runs, report.Agreed)
	})
}

func TestARunThatTakesLongerThanItsAttemptMayWaitInLineIsNotTooLong(t *testing.T) {
	source := defined(t, map[string]any{"rrule": "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", "policy": map[string]any{
		"timeout": "1h", "queue_timeout": "5m", "retries": []any{}, "on_exhausted": "next_planned"}})
	told, report := compared(t, runs("5 06:00 30 ok", "5 16:00 30 ok"), Options{Within: time.Minute}, map[string]Source{"m": source})
	failIf(t, len(told) > 0 || report.Agreed != 2, "expected two runs that agree, found %v, %+v", told, report)
}
