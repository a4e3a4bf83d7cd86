#!/usr/bin/env bash
# github.com/adhocore/gronx v1.20.4 (Go module), by which schedulers such as gronx/pkg/tasker find their next run.
#
# Behaviour: after the last time of an expression that names years, NextTickAfter with inclRefTime false gives the reference time itself, and no error.
# Who asks for what comes after that gets the same instant again, without end.
# Expected: an error, as for a year that is past ("unreachable year segment"), as nothing comes after 2028-01-01. Source: its README, "next tick after
# certain reference time", with allowCurrent for the reference time itself; hashicorp/cronexpr gives the zero time there.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/adhocore/gronx@v1.20.4 >/dev/null 2>&1

cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/adhocore/gronx"
)

func main() {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for range 4 {
		next, err := gronx.NextTickAfter("0 0 0 1 1 * 2027-2028", at, false)
		fmt.Println(next.Format(time.DateOnly), err)
		at = next
	}
	_, err := gronx.NextTickAfter("0 0 0 1 1 * 2027-2028", time.Date(2029, 6, 1, 0, 0, 0, 0, time.UTC), false)
	fmt.Println("after 2029-06-01:", err != nil)
}
GO
go run . | tee seen.txt
diff seen.txt - <<'SEEN'
2027-01-01 <nil>
2028-01-01 <nil>
2028-01-01 <nil>
2028-01-01 <nil>
after 2029-06-01: true
SEEN
