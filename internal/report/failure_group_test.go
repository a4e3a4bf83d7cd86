package report_test

import (
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

func TestFailureGroupsAreAddedUpInWhicheverOrderThePartsCome(t *testing.T) {
	at := func(s int) time.Time { return fixture.SixOClock.Add(time.Duration(s) * time.Second) }
	one := report.FailureGroup{
		ID: "e1", Models: 1, FirstAt: at(1), LastAt: at(5), Text: "t1", Reason: "r1", ErrorType: "y1", UID: "m1", UIDs: list{"m1"}, Failures: 2, Began: 3, Ended: 4,
	}
	two := report.FailureGroup{
		ID: "e1", Models: 10, FirstAt: at(2), LastAt: at(6), Text: "t2", Reason: "r2", ErrorType: "y2", UID: "m2", UIDs: list{"m2", "m3", "m4"}, Failures: 20, Began: 30, Ended: 40,
	}
	both := report.FailureGroup{
		ID: "e1", Models: 11, FirstAt: at(1), LastAt: at(6), Text: "t2", Reason: "r2", ErrorType: "y2", UID: "m2", Failures: 22, Began: 33, Ended: 44,
	}
	past := func(s int) report.FailureGroup {
		return report.FailureGroup{ID: "e1", PastAt: at(s), LastAt: at(s), UIDs: list{}}
	}
	with := func(group report.FailureGroup, uids ...string) report.FailureGroup {
		group.UIDs = uids
		return group
	}
	unknown := report.FailureGroup{ID: "e1", UIDs: list{}}
	for name, test := range map[string]struct{ first, second, want report.FailureGroup }{
		"one alone":                {report.FailureGroup{}, one, one},
		"the later second":         {one, two, with(both, "m1", "m2", "m3")},
		"the later first":          {two, one, with(both, "m2", "m3", "m4")},
		"one of unknown time":      {one, unknown, one},
		"first of unknown time":    {unknown, one, one},
		"both past, second later":  {past(1), past(2), past(2)},
		"both past, first later":   {past(2), past(1), past(2)},
		"past here, failing there": {past(1), with(report.FailureGroup{ID: "e1", Models: 1, LastAt: at(1)}), with(report.FailureGroup{ID: "e1", Models: 1, LastAt: at(1)}, list{}...)},
	} {
		got := test.first
		got.Add(&test.second)
		if len(got.UIDs) == 0 {
			got.UIDs, test.want.UIDs = nil, nil
		}
		expectEqual(t, name, test.want, got)
	}
	got := with(report.FailureGroup{ID: "e1", Models: 1, LastAt: at(1)})
	got.Add(new(past(2)))
	failIf(t, !got.PastAt.IsZero(), "failing here, past there: past since %s", got.PastAt)
}

func TestStatsAreAddedUpFieldByField(t *testing.T) {
	at := fixture.SixOClock
	stats := func(n int64, oldest time.Time) report.Stats {
		return report.Stats{
			At: oldest, Due: n, Urgent: 2 * n, Waiting: 3 * n, Running: 4 * n, Failing: 5 * n, Disabled: 6 * n, Parked: 7 * n, Input: 8 * n, Output: 9 * n, Control: 10 * n,
			Claimed: 11 * n, Rejected: 12 * n, Journal: 13 * n, Outbox: 14 * n, OpenCircuits: 15 * n, OldestDue: oldest, OldestNotice: oldest,
			ParkedBy: map[string]int64{"hold": n}, Freshness: report.FreshnessCounts{model.Fresh: n}, Errors: report.Fingerprints{"e": n},
			Counters: map[string]int64{"start": n}, Living: map[model.Role]int64{model.RolePoller: n},
		}
	}
	want := stats(11, at)
	want.At, want.Living = at.Add(time.Second), map[model.Role]int64{model.RolePoller: 1}
	for _, order := range [][2]report.Stats{{stats(1, at), stats(10, at.Add(time.Second))}, {stats(10, at.Add(time.Second)), stats(1, at)}} {
		var sum report.Stats
		sum.Add(&order[0])
		sum.Add(&order[1])
		expectEqual(t, "sum", want, sum)
	}
	for _, opens := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		sum := report.Stats{}
		for _, open := range opens {
			sum.Add(&report.Stats{QueueCircuitOpen: open})
		}
		failIf(t, sum.QueueCircuitOpen != (opens[0] || opens[1]), "%v: open: %t", opens, sum.QueueCircuitOpen)
	}
	counts := report.FreshnessCounts{model.Fresh: 1, model.FreshnessNever: 10, model.FreshnessLate: 100, model.FreshnessStale: 1000, "": 7}
	failIf(t, counts.Watched() != 1111, "watched: %d", counts.Watched())
}

func TestASampleHasEachCountAndSizeUnderItsName(t *testing.T) {
	stats := report.Stats{
		At: fixture.SixOClock, OldestDue: fixture.SixOClock.Add(-90 * time.Second), Due: 1, Waiting: 10, Parked: 100, Running: 1000, Disabled: 10000, Failing: 3, Input: 4,
		Freshness: report.FreshnessCounts{model.FreshnessNever: 5, model.Fresh: 6, model.FreshnessLate: 7, model.FreshnessStale: 8},
		Counters:  map[string]int64{"start": 11, "success": 12, "failure": 13, "timeout": 14},
	}
	const want = "start=11 success=12 failure=13 timeout=14 models=11111 failing=3 disabled=10000 never=5 fresh=6 late=7 stale=8 input=4 oldest_wait_s=90 taken=0 second=0"
	expectEqual(t, "sample", want, stats.Sample().String())
	stats.OldestDue = time.Time{}
	expectEqual(t, "nothing is due", int64(0), stats.Sample().Values[report.MetricWait])
	for metric, counts := range map[report.Metric]bool{report.MetricStarts: true, report.MetricTimeouts: true, report.MetricModels: false, report.MetricWait: false} {
		failIf(t, metric.Counts() != counts, "%s counts since the beginning: %t", metric, !counts)
	}
}

func TestThePlaceInLineGivesATimeOnlyIfBothPlaceAndRateAreKnown(t *testing.T) {
	for place, want := range map[report.QueuePosition]time.Duration{{}: 0, {No: 4}: 0, {Rate: 2}: 0, {No: 4, Rate: 2}: 2 * time.Second, {No: 1, Rate: 0.5}: 2 * time.Second} {
		failIf(t, place.Wait() != want, "%+v: got %s, want %s", place, place.Wait(), want)
	}
}
