#!/usr/bin/env bash
# github.com/hashicorp/cronexpr v1.1.3 (Go module), which Nomad reads periodic jobs with.
#
# Behaviour: 7 alone is Sunday, and at the end of a range it is nothing, without an error: 5-7 is Friday and Saturday, 1-7 is all days but Sunday.
# Expected: Friday to Sunday, and every day. Source: its README, "Domain for day-of-week field is [0-7] instead of [0-6], 7 being Sunday (like 0). This to
# comply with crontab"; Debian cron 3.0pl1-212, cronie 1.7.2, croner 11.0.1, cron-parser 5.10.6 and croniter 6.2.4 run 5-7 on Sunday too.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/hashicorp/cronexpr@v1.1.3 >/dev/null 2>&1

cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/hashicorp/cronexpr"
)

func main() {
	for _, expression := range []string{"0 0 * * 5-7", "0 0 * * 1-7", "0 0 * * 7"} {
		parsed, err := cronexpr.Parse(expression)
		fmt.Print(expression, ":")
		at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		for range 7 {
			if err != nil {
				fmt.Print(" refused")
				break
			}
			at = parsed.Next(at)
			fmt.Print(" ", at.Format("Mon-01-02"))
		}
		fmt.Println()
	}
}
GO
go run . | tee seen.txt
diff seen.txt - <<'SEEN'
0 0 * * 5-7: Fri-12-04 Sat-12-05 Fri-12-11 Sat-12-12 Fri-12-18 Sat-12-19 Fri-12-25
0 0 * * 1-7: Wed-12-02 Thu-12-03 Fri-12-04 Sat-12-05 Mon-12-07 Tue-12-08 Wed-12-09
0 0 * * 7: Sun-12-06 Sun-12-13 Sun-12-20 Sun-12-27 Sun-01-03 Sun-01-10 Sun-01-17
SEEN
