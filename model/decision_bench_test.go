package model

import (
	"testing"

	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

func failingAt(t testing.TB, policy, dtstart string, k int) *Model {
	t.Helper()
	m := &Model{UID: "tbl_1", Rule: "FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0", Timezone: "Europe/Berlin", Dtstart: dtstart}
	must(t, m.Resolve(policyOf(t, policy), schedule.Parse))
	m.AttemptNo = k - 1
	m.State = m.Start(clock("06:00"), "5f3c8e0a9b1d4c7e8f2a6b3c4d5e6f70").Next
	return m
}

const (
	listPolicy = `{"timeout":"1h","retries":["0s","1m","5m","15m","30m","1h"]}`
	fullPolicy = `{"timeout":"1h","queue_timeout":"10m","retries":{"strategy":"fibonacci","cap":"1h"},"alignment":"between_planned","give_up_after":"1w",
		"never_retry":"permanent","delays_by_error":{"RateLimited":"1h"},"retry_window":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16","misfire":"skip","spread":"10m"}`
)

const progressive = `"retries":{"by_age":["1d: 5m","7d: 1h","14d: 12h","30d: 24h","180d: 96h","360d: 192h"]}`

var benchmarked = map[string]string{
	"list": listPolicy, "all fields": fullPolicy,
	"exponential": `{"timeout":"1h","retries":{"strategy":"exponential","cap":"1h"}}`,
	"age table":   `{"timeout":"1h",` + progressive + `}`,
	"expression":  `{"timeout":"1h","retries":{"expr":"k <= 5 ? min(60 * 2 ** (k - 1), 3600) : false"}}`,
	"spread":      `{"timeout":"1h","retries":["1m"],"spread":"10m"}`,
	"window":      `{"timeout":"1h","retries":["1m"],"retry_window":"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16"}`,
}

// BenchmarkFailure is the decision after a failure: at most 10 microseconds are wanted.
func BenchmarkFailure(b *testing.B) {
	for name, p := range benchmarked {
		b.Run(name, func(b *testing.B) {
			m := failingAt(b, p, "2016-03-01T00:00:00", 1)
			failure, now := policy.Failure{Reason: "HTTP 503", ErrorType: "NetworkError"}, clock("06:10")
			b.ReportAllocs()
			for b.Loop() {
				m.Fail(failure, now)
			}
		})
	}
}

// What a decision allocates depends neither on the number of failures nor on the age of the schedule.
func TestADecisionAllocatesNoMoreForTheThousandthFailureOrAnOldSchedule(t *testing.T) {
	for name, p := range benchmarked {
		allocations := func(dtstart string, k int) float64 {
			m := failingAt(t, p, dtstart, k)
			return testing.AllocsPerRun(20, func() { m.Fail(policy.Failure{}, clock("06:10")) })
		}
		first := allocations("2026-01-01T00:00:00", 2)
		for _, dtstart := range []string{"2026-01-01T00:00:00", "1970-01-01T00:00:00"} {
			for _, k := range []int{2, 1000, 1_000_000} {
				if got := allocations(dtstart, k); got > first+8 { // of fmt, whose pool the race detector empties at random
					t.Errorf("%s: failure %d since %s: %g allocations, the second since 2026: %g", name, k, dtstart, got, first)
				}
			}
		}
	}
}
