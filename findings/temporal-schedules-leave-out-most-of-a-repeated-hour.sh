#!/usr/bin/env bash
# Temporal server 1.31.0 (Go module go.temporal.io/server, with go.temporal.io/api 1.62.8, Go 1.26): the next times of a schedule, asked of the package
# that the server asks. It builds about 470 packages, which takes some minutes.
#
# Behaviour: when the clocks go back, it depends on the side of Greenwich. In America/New_York a schedule runs in both equal hours. In Europe/Berlin it runs
# once where its clock time comes twice, at the second, and "every 20 minutes" runs at 00:00Z, 01:20Z and 02:40Z: two holes of 80 minutes, in which
# six of seven runs are left out.
# Expected: 02:30 in Berlin twice as 01:30 in New York, and a run every 20 minutes in both. Source: the comments of ScheduleSpec in the API: "literal
# matching of the clock time with no special handling of DST … an action that fires at 1:30am will be triggered twice on the day that has two 1:30s". The
# cron library of the same server (robfig/cron 3.0.1, for the older CronSchedule of a workflow) does that.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/server/service/worker/scheduler"
)

func main() {
	builder := scheduler.NewSpecBuilder()
	for _, c := range []struct {
		cron, zone, after string
		runs              int
	}{
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2},
		{"*/20 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 5},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2},
		{"*/20 * * * *", "America/New_York", "2026-11-01T05:10:00Z", 5},
	} {
		spec, err := builder.NewCompiledSpec(&schedulepb.ScheduleSpec{CronString: []string{c.cron}, TimezoneName: c.zone})
		if err != nil {
			panic(err)
		}
		at, _ := time.Parse(time.RFC3339, c.after)
		fmt.Printf("%s in %s:", c.cron, c.zone)
		for range c.runs {
			at = spec.GetNextTime("", at).Nominal
			fmt.Print(" ", at.UTC().Format("02T15:04Z"))
		}
		fmt.Println()
	}
}
GO
go mod init seen >/dev/null 2>&1
go get go.temporal.io/server@v1.31.0 go.temporal.io/api@v1.62.8 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
TZ=UTC go run . | tee seen.txt
diff seen.txt - <<'SEEN'
30 2 * * * in Europe/Berlin: 25T01:30Z 26T01:30Z
*/20 * * * * in Europe/Berlin: 24T23:40Z 25T00:00Z 25T01:20Z 25T02:40Z 25T03:00Z
30 1 * * * in America/New_York: 01T05:30Z 01T06:30Z
*/20 * * * * in America/New_York: 01T05:20Z 01T05:40Z 01T06:00Z 01T06:20Z 01T06:40Z
SEEN
