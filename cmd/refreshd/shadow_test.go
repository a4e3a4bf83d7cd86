package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

// exported are the flags that read examples/adopt/cron.csv.
var exported = []string{"shadow", "../../examples/adopt/cron.csv", "-f", "../../examples/adopt", "--timezone", "Europe/Berlin",
	"--columns", "uid=table_id,at=started,ended=finished,outcome=status,error=error"}

// differs runs a shadow that finds differences and returns what it prints.
func (c *console) differs(args ...string) string {
	c.t.Helper()
	code, stdout, stderr := c.run(args...)
	stopIf(c.t, code != exitDiffer || stderr != "", "expected exit code %d and no complaint, found %d\n%s", exitDiffer, code, stderr)
	return stdout
}

func TestTheExportOfAnOldCronIsComparedWithoutRedis(t *testing.T) {
	c := nowhere(t)
	text := c.differs(exported...)
	expectContains(t, text, "57 runs of 3 models, 2026-10-22 00:00+02:00 to 2026-10-28 18:00+01:00; 39 agree within 1m")
	for _, line := range []string{
		"later    16     2       we would have started later       tbl_1 line 27 old 2026-10-25 05:00:03+01:00 ours 2026-10-25 06:00:00+01:00 by 59m57s (planned)",
		"missed   1      1       planned, and not started          tbl_2 ours 2026-10-23 16:00:00+02:00 (planned)",
		"twice    1      1       it ran again beside its last run  tbl_2 line 37 old 2026-10-26 05:00:54+01:00 by 31s (planned)",
		"earlier  1      1       we would have started earlier     tbl_1 line 24",
		"tbl_2  14    5      later 8, missed 1, twice 1",
	} {
		expectContains(t, text, line)
	}
	failIf(t, strings.Contains(text, "tbl_3"), "expected a model that agrees to be left out, found it in\n%s", text)
}

func TestAShadowTellsEachDifferenceAndTheSumInJSON(t *testing.T) {
	c := nowhere(t)
	var kinds []string
	for _, object := range c.objects(c.differs(append(exported, "-o", "json", "--each", "--until", "2026-10-25")...)) {
		kinds = append(kinds, fmt.Sprintf("%v %v %v %v", object["kind"], object["difference"], object["uid"], object["differing"]))
		if object["kind"] == "difference" && object["difference"] == "earlier" {
			if object["old"] != "2026-10-24T14:14:03.000Z" || object["ours"] != "2026-10-24T14:04:03.000Z" || object["seconds"] != 600.0 || object["line"] != 24.0 {
				t.Errorf("expected a retry that was ten minutes late, found %v", object)
			}
		}
	}
	want := []string{"difference missed tbl_2 <nil>", "difference earlier tbl_1 <nil>", "model <nil> tbl_1 <nil>", "model <nil> tbl_2 <nil>", "summary <nil> <nil> 2"}
	equal(t, want, kinds)
}

func TestAShadowThatAgreesEndsWell(t *testing.T) {
	c := nowhere(t)
	c.in = `{"uid":"tbl_1","started_at":"2026-10-05T04:00:00Z"}` + "\n" + `{"uid":"tbl_1","started_at":"2026-10-05T14:00:30Z"}` + "\n"
	models := file(t, "m.yaml", "{uid: tbl_1, timezone: Europe/Berlin, rrule: \"FREQ=DAILY;BYHOUR=6,16\"}")
	expectContains(t, c.do("shadow", "-", "-f", models), "2 runs of 1 model, 2026-10-05 04:00Z to 2026-10-05 14:00Z; 2 agree within 1m")
}

func TestAShadowOfAQueueWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		c.do("model", "put", file(t, "m.yaml", "uid: tbl_1\nrrule: FREQ=HOURLY\ntimezone: UTC\ndtstart: 2026-01-01T00:00:00\n"))
		before := server.Dump(t)
		c.in = "OK\n" + `1791180000.5 [0 127.0.0.1:1] "RPUSH" "bigtables-input" "{\"big_table_uid\":\"tbl_1\",\"refresh_attempt_uid\":\"a\"}"` + "\n" +
			`1791183660.5 [0 127.0.0.1:1] "RPUSH" "bigtables-input" "{\"big_table_uid\":\"tbl_1\",\"refresh_attempt_uid\":\"b\"}"` + "\n" +
			`1791187800.5 [0 127.0.0.1:1] "RPUSH" "bigtables-input" "{\"big_table_uid\":\"tbl_2\",\"refresh_attempt_uid\":\"c\"}"` + "\n"
		text := c.differs("shadow", "-", "--within", "2m")
		expectContains(t, text, "3 runs of 1 model")
		expectContains(t, text, "unknown")
		equal(t, before, server.Dump(t))
	})
}

func TestAShadowRefusesWhatItCannotCompareAndALogWithoutARunProvesNothing(t *testing.T) {
	c := nowhere(t)
	models := file(t, "m.yaml", "uid: tbl_1\nrrule: FREQ=HOURLY\n")
	for _, test := range []struct{ log, flags, want string }{
		{"", "none.csv -f " + models, "none.csv"},
		{"", "- -f " + file(t, "bad.yaml", "uid: tbl_1\nrule: x\n"), "bad.yaml line 2"},
		{"", "- -f " + file(t, "named.yaml", "uid: tbl_1\npolicy: other\n"), "named.yaml line 2: policy: expected a policy, or the name of a stored one"},
		{"id;time\n", "- -f " + models, `standard input: line 1: columns: expected one called "uid"`},
		{"", "- --format csv -f " + models, "at least one run"},
		{"uid,started_at\n", "- --format csv -o json -f " + models, "at least one run"},
		{"uid,started_at\ntbl_1,2026-10-05T04:00:00Z\n", "- --format csv --from 2026-10-06 --until 2026-10-06 -f " + models, "at least one run"},
	} {
		c.in = test.log
		expectContains(t, c.fail(exitFailed, line("shadow "+test.flags)...), test.want)
	}
}

func TestTheLogOfAnHourlyCronAgreesWhereTheClocksShowAnHourTwice(t *testing.T) {
	c := nowhere(t)
	models := file(t, "m.yaml", "{uid: m, timezone: Europe/London, rrule: \"*/30 * * * *\"}")
	for _, log := range []string{
		"2026-10-25 00:30,2026-10-25 00:35\n2026-10-25 01:00,2026-10-25 01:05\n2026-10-25 01:30,2026-10-25 01:35\n2026-10-25 01:00,2026-10-25 01:05\n" +
			"2026-10-25 01:30,2026-10-25 01:35\n2026-10-25 02:00,2026-10-25 02:05\n",
		"2026-03-29 00:00,2026-03-29 00:05\n2026-03-29 00:30,2026-03-29 00:35\n2026-03-29 02:00,2026-03-29 02:05\n2026-03-29 02:30,2026-03-29 02:35\n",
	} {
		c.in = "uid,started_at,ended_at\n" + "m," + strings.ReplaceAll(strings.TrimSpace(log), "\n", "\nm,") + "\n"
		runs := strings.Count(log, "\n")
		expectContains(t, c.do("shadow", "-", "-f", models, "--timezone", "Europe/London"), fmt.Sprintf("; %d agree within 1m", runs))
	}
}
