#!/usr/bin/env bash
# github.com/reugn/go-quartz v0.15.2 (Go module), a scheduler in the manner of Quartz.
#
# Behaviour: L alone as the day of week is the last Saturday of each month.
# Expected: every Saturday. Source: its README, "Last day of the week (7 or SAT) when alone"; Quartz 2.3.2 (Debian, libquartz2-java 2.3.2-4) gives
# 2026-12-05, 2026-12-12, 2026-12-19 and 2026-12-26.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/reugn/go-quartz@v0.15.2 >/dev/null 2>&1

cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/reugn/go-quartz/quartz"
)

func main() {
	for _, expression := range []string{"0 0 0 ? * L", "0 0 0 ? * 7", "0 0 0 ? * SAT"} {
		trigger, err := quartz.NewCronTriggerWithLoc(expression, time.UTC)
		if err != nil {
			fmt.Println(expression, err)
			continue
		}
		at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixNano()
		fmt.Print(expression, ":")
		for range 4 {
			at, err = trigger.NextFireTime(at)
			fmt.Print(" ", time.Unix(0, at).UTC().Format(time.DateOnly))
		}
		fmt.Println(" ", err)
	}
}
GO
go run . | tee seen.txt
diff seen.txt - <<'SEEN'
0 0 0 ? * L: 2026-12-26 2027-01-30 2027-02-27 2027-03-27  <nil>
0 0 0 ? * 7: 2026-12-05 2026-12-12 2026-12-19 2026-12-26  <nil>
0 0 0 ? * SAT: 2026-12-05 2026-12-12 2026-12-19 2026-12-26  <nil>
SEEN
