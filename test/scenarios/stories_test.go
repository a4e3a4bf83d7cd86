package scenarios

import (
	"fmt"
	"strings"
	"testing"
)

// The big table: at 6 AM and 4 PM; allow 1 hour; retry at once, after 1, 5, 15 and 30 minutes and after 1 hour.
const (
	at6And16   = `"rrule":"FREQ=DAILY;BYHOUR=6,16;BYMINUTE=0;BYSECOND=0","dtstart":"2026-01-01T00:00:00",`
	sixRetries = `"timeout":"1 hour","retries":[0,"1 minute","5 minutes","15 minutes","30 minutes","1 hour"]`

	berlin  = at6And16 + `"timezone":"Europe/Berlin","policy":{` + sixRetries + `,"on_exhausted":"give_up"}`
	newYork = at6And16 + `"timezone":"America/New_York","policy":{` + sixRetries + `,"on_exhausted":"give_up"}`
)

const feed, otherFeed = `"payload":{"input_url":"https://example.com/a.csv"}`, `"payload":{"input_url":"https://example.com/b.csv"}`

func TestABigTableAtSixAndSixteenGivesUpAfterSixRetriesAndIsEnabledByAnUpdate(t *testing.T) {
	tell(t, berlin, []step{
		// Every other answer is lost, the last one too.
		{at: "2026-01-04T20:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T06:00:00+01:00", why: "planned"},
		{at: "2026-01-05T06:00:00+01:00", do: "start", no: 1, deadline: "2026-01-05T07:00:00+01:00", refresh: "2026-01-05T07:00:00+01:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
		{at: "2026-01-05T06:10:00+01:00", do: `fail "reason":"HTTP 404"`, no: 1, refresh: "2026-01-05T06:10:00+01:00", why: "retry 1 of 6 at once, ends before planned"},
		{at: "2026-01-05T06:10:00+01:00", do: "start", no: 2, deadline: "2026-01-05T07:10:00+01:00", refresh: "2026-01-05T07:11:00+01:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-01-05T07:10:00+01:00", do: "lost", no: 2, refresh: "2026-01-05T07:11:00+01:00", why: "retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-01-05T07:11:00+01:00", do: "start", no: 3, deadline: "2026-01-05T08:11:00+01:00", refresh: "2026-01-05T08:16:00+01:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-01-05T07:30:00+01:00", do: `fail "reason":"HTTP 404"`, no: 3, refresh: "2026-01-05T07:35:00+01:00", why: "retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-01-05T07:35:00+01:00", do: "start", no: 4, deadline: "2026-01-05T08:35:00+01:00", refresh: "2026-01-05T08:50:00+01:00", why: "on timeout: retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-01-05T08:35:00+01:00", do: "lost", no: 4, refresh: "2026-01-05T08:50:00+01:00", why: "retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-01-05T08:50:00+01:00", do: "start", no: 5, deadline: "2026-01-05T09:50:00+01:00", refresh: "2026-01-05T10:20:00+01:00", why: "on timeout: retry 5 of 6 after 30m, ends before planned"},
		{at: "2026-01-05T09:00:00+01:00", do: `fail "reason":"HTTP 404"`, no: 5, refresh: "2026-01-05T09:30:00+01:00", why: "retry 5 of 6 after 30m, ends before planned"},
		{at: "2026-01-05T09:30:00+01:00", do: "start", no: 6, deadline: "2026-01-05T10:30:00+01:00", refresh: "2026-01-05T11:30:00+01:00", why: "on timeout: retry 6 of 6 after 1h, ends before planned"},
		{at: "2026-01-05T10:30:00+01:00", do: "lost", no: 6, refresh: "2026-01-05T11:30:00+01:00", why: "retry 6 of 6 after 1h, ends before planned"},
		{at: "2026-01-05T11:30:00+01:00", do: "start", no: 7, deadline: "2026-01-05T12:30:00+01:00", refresh: "", why: "on timeout: disabled after 7 failures, no retry left"},
		{at: "2026-01-05T12:30:00+01:00", do: "lost", no: 7, refresh: "", why: "disabled after 7 failures, no retry left", reason: "Cannot refresh after 7 attempts: timeout"},

		// Disabled: 4 PM passes, and so does the next morning. Then the owner mends the address, in the afternoon, and need not
		// wait for 4 PM.
		{at: "2026-01-05T16:00:00+01:00", do: "stay"},
		{at: "2026-01-06T06:00:00+01:00", do: "stay"},
		{at: "2026-01-06T15:30:00+01:00", do: "save " + otherFeed, no: 0, refresh: "2026-01-06T15:30:00+01:00", why: "saved: refresh now"},
		{at: "2026-01-06T15:30:00+01:00", do: "start", no: 1, deadline: "2026-01-06T16:30:00+01:00", refresh: "2026-01-06T16:30:00+01:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
		{at: "2026-01-06T16:20:00+01:00", do: "succeed", no: 0, refresh: "2026-01-07T06:00:00+01:00", why: "planned"},
		{at: "2026-01-07T06:00:00+01:00", do: "start", no: 1, deadline: "2026-01-07T07:00:00+01:00", refresh: "2026-01-07T07:00:00+01:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
		{at: "2026-01-07T06:20:00+01:00", do: "succeed", no: 0, refresh: "2026-01-07T16:00:00+01:00", why: "planned"},
	}, remains{
		counters: map[string]string{"create": "1", "update": "1", "start": "9", "retry": "6", "failure": "3", "timeout": "4", "exhausted": "1",
			"final_failure": "1", "success": "2", "recovered": "1", "total_retries": "6", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-01-05T11:30:00.000Z #7: Cannot refresh after 7 attempts: timeout", "recovered 2026-01-06T15:20:00.000Z #1"},
	})
}

func TestABigTableWhoseAnswersAreAllLostIsGivenUpBeforeItsNextPlannedRefresh(t *testing.T) {
	tell(t, berlin, []step{
		{at: "2026-07-04T20:00:00+02:00", do: "save " + feed, no: 0, refresh: "2026-07-05T06:00:00+02:00", why: "planned"},
		{at: "2026-07-05T06:00:00+02:00", do: "start", no: 1, deadline: "2026-07-05T07:00:00+02:00", refresh: "2026-07-05T07:00:00+02:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
		{at: "2026-07-05T07:00:00+02:00", do: "lost", no: 1, refresh: "2026-07-05T07:00:00+02:00", why: "retry 1 of 6 at once, ends before planned"},
		{at: "2026-07-05T07:00:00+02:00", do: "start", no: 2, deadline: "2026-07-05T08:00:00+02:00", refresh: "2026-07-05T08:01:00+02:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-07-05T08:00:00+02:00", do: "lost", no: 2, refresh: "2026-07-05T08:01:00+02:00", why: "retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-07-05T08:01:00+02:00", do: "start", no: 3, deadline: "2026-07-05T09:01:00+02:00", refresh: "2026-07-05T09:06:00+02:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-07-05T09:01:00+02:00", do: "lost", no: 3, refresh: "2026-07-05T09:06:00+02:00", why: "retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-07-05T09:06:00+02:00", do: "start", no: 4, deadline: "2026-07-05T10:06:00+02:00", refresh: "2026-07-05T10:21:00+02:00", why: "on timeout: retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-07-05T10:06:00+02:00", do: "lost", no: 4, refresh: "2026-07-05T10:21:00+02:00", why: "retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-07-05T10:21:00+02:00", do: "start", no: 5, deadline: "2026-07-05T11:21:00+02:00", refresh: "2026-07-05T11:51:00+02:00", why: "on timeout: retry 5 of 6 after 30m, ends before planned"},
		{at: "2026-07-05T11:21:00+02:00", do: "lost", no: 5, refresh: "2026-07-05T11:51:00+02:00", why: "retry 5 of 6 after 30m, ends before planned"},
		{at: "2026-07-05T11:51:00+02:00", do: "start", no: 6, deadline: "2026-07-05T12:51:00+02:00", refresh: "2026-07-05T13:51:00+02:00", why: "on timeout: retry 6 of 6 after 1h, ends before planned"},
		{at: "2026-07-05T12:51:00+02:00", do: "lost", no: 6, refresh: "2026-07-05T13:51:00+02:00", why: "retry 6 of 6 after 1h, ends before planned"},
		{at: "2026-07-05T13:51:00+02:00", do: "start", no: 7, deadline: "2026-07-05T14:51:00+02:00", refresh: "", why: "on timeout: disabled after 7 failures, no retry left"},
		{at: "2026-07-05T14:51:00+02:00", do: "lost", no: 7, refresh: "", why: "disabled after 7 failures, no retry left", reason: "Cannot refresh after 7 attempts: timeout"},
		{at: "2026-07-05T16:00:00+02:00", do: "stay"},
	}, remains{
		counters: map[string]string{"create": "1", "start": "7", "retry": "6", "timeout": "7", "exhausted": "1", "final_failure": "1",
			"total_retries": "6", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-07-05T12:51:00.000Z #7: Cannot refresh after 7 attempts: timeout"},
	})
}

// Clocks go back at 2 AM on 1 November 2026: from 1 AM to 2 AM comes twice.
func TestRetriesThroughTheNightOfTheChangeToWinterTimeMeetThePlannedRefresh(t *testing.T) {
	tell(t, newYork, []step{
		{at: "2026-10-31T17:00:00-04:00", do: "save " + feed, no: 0, refresh: "2026-11-01T06:00:00-05:00", why: "planned"},
		{at: "2026-11-01T00:30:00-04:00", do: "run", no: 0, refresh: "2026-11-01T00:30:00-04:00", why: "run by hand"},
		{at: "2026-11-01T00:30:00-04:00", do: "start", no: 1, deadline: "2026-11-01T01:30:00-04:00", refresh: "2026-11-01T01:30:00-04:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
		{at: "2026-11-01T01:30:00-04:00", do: "lost", no: 1, refresh: "2026-11-01T01:30:00-04:00", why: "retry 1 of 6 at once, ends before planned"},
		{at: "2026-11-01T01:30:00-04:00", do: "start", no: 2, deadline: "2026-11-01T01:30:00-05:00", refresh: "2026-11-01T01:31:00-05:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-11-01T01:30:00-05:00", do: "lost", no: 2, refresh: "2026-11-01T01:31:00-05:00", why: "retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-11-01T01:31:00-05:00", do: "start", no: 3, deadline: "2026-11-01T02:31:00-05:00", refresh: "2026-11-01T02:36:00-05:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-11-01T02:31:00-05:00", do: "lost", no: 3, refresh: "2026-11-01T02:36:00-05:00", why: "retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-11-01T02:36:00-05:00", do: "start", no: 4, deadline: "2026-11-01T03:36:00-05:00", refresh: "2026-11-01T03:51:00-05:00", why: "on timeout: retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-11-01T03:36:00-05:00", do: "lost", no: 4, refresh: "2026-11-01T03:51:00-05:00", why: "retry 4 of 6 after 15m, ends before planned"},
		{at: "2026-11-01T03:51:00-05:00", do: "start", no: 5, deadline: "2026-11-01T04:51:00-05:00", refresh: "2026-11-01T06:00:00-05:00", why: "on timeout: retry 5 of 6 waits for planned, would overlap"},
		{at: "2026-11-01T04:51:00-05:00", do: "lost", no: 5, refresh: "2026-11-01T06:00:00-05:00", why: "retry 5 of 6 waits for planned, would overlap"},
		{at: "2026-11-01T06:00:00-05:00", do: "start", no: 6, deadline: "2026-11-01T07:00:00-05:00", refresh: "2026-11-01T08:00:00-05:00", why: "on timeout: retry 6 of 6 after 1h, ends before planned"},
		{at: "2026-11-01T06:05:00-05:00", do: "succeed", no: 0, refresh: "2026-11-01T16:00:00-05:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "run": "1", "start": "6", "retry": "5", "timeout": "5", "success": "1",
		"total_retries": "5", "successful_retries": "1", "retried_cycles": "1"}})
}

func TestARetryThatEndsExactlyAtThePlannedRefreshRunsAndOneThatEndsLaterWaits(t *testing.T) {
	tell(t, berlin, []step{
		{at: "2026-01-05T13:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T16:00:00+01:00", why: "planned"},
		{at: "2026-01-05T14:30:00+01:00", do: "run", no: 0, refresh: "2026-01-05T14:30:00+01:00", why: "run by hand"},
		{at: "2026-01-05T14:30:00+01:00", do: "start", no: 1, deadline: "2026-01-05T15:30:00+01:00", refresh: "2026-01-05T16:00:00+01:00", why: "on timeout: retry 1 of 6 waits for planned, would overlap"},
		{at: "2026-01-05T15:00:00+01:00", do: "fail", no: 1, refresh: "2026-01-05T15:00:00+01:00", why: "retry 1 of 6 at once, ends before planned"},
		{at: "2026-01-05T15:00:00+01:00", do: "start", no: 2, deadline: "2026-01-05T16:00:00+01:00", refresh: "2026-01-05T16:01:00+01:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
		{at: "2026-01-05T15:00:01+01:00", do: "fail", no: 2, refresh: "2026-01-05T16:00:00+01:00", why: "retry 2 of 6 waits for planned, would overlap"},
		{at: "2026-01-05T16:00:00+01:00", do: "start", no: 3, deadline: "2026-01-05T17:00:00+01:00", refresh: "2026-01-05T17:05:00+01:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
		{at: "2026-01-05T16:00:01+01:00", do: "succeed", no: 0, refresh: "2026-01-06T06:00:00+01:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "run": "1", "start": "3", "retry": "2", "failure": "2", "success": "1",
		"total_retries": "2", "successful_retries": "1", "retried_cycles": "1"}})
}

// The banner: allow 1 minute; retry at once, after 1 minute, after 5 minutes; then give up.
const banner = `"policy":{"timeout":"1 minute","retries":[0,"1 minute","5 minutes"],"on_exhausted":"give_up"}`

const edit1, edit2, edit3, edit4 = `"payload":{"input_url":"/v1"}`, `"payload":{"input_url":"/v2"}`, `"payload":{"input_url":"/v3"}`, `"payload":{"input_url":"/v4"}`

func TestAThumbnailIsMadeAfterEachEditOrItsOwnerReadsWhyNot(t *testing.T) {
	const failed = `"reason":"HTTP 500","user_friendly_reason":"thumbnail creation failed"`
	tell(t, banner, []step{
		// Saved: at once, and after four failures not again. The third answer is lost.
		{at: "2026-01-05T12:00:00Z", do: "save " + edit1, no: 0, refresh: "2026-01-05T12:00:00Z", why: "saved: refresh now"},
		{at: "2026-01-05T12:00:00Z", do: "start", no: 1, deadline: "2026-01-05T12:01:00Z", refresh: "2026-01-05T12:01:00Z", why: "on timeout: retry 1 of 3 at once"},
		{at: "2026-01-05T12:00:20Z", do: "fail " + failed, no: 1, refresh: "2026-01-05T12:00:20Z", why: "retry 1 of 3 at once"},
		{at: "2026-01-05T12:00:20Z", do: "start", no: 2, deadline: "2026-01-05T12:01:20Z", refresh: "2026-01-05T12:02:20Z", why: "on timeout: retry 2 of 3 after 1m"},
		{at: "2026-01-05T12:00:50Z", do: "fail " + failed, no: 2, refresh: "2026-01-05T12:01:50Z", why: "retry 2 of 3 after 1m"},
		{at: "2026-01-05T12:01:50Z", do: "start", no: 3, deadline: "2026-01-05T12:02:50Z", refresh: "2026-01-05T12:07:50Z", why: "on timeout: retry 3 of 3 after 5m"},
		{at: "2026-01-05T12:02:50Z", do: "lost", no: 3, refresh: "2026-01-05T12:07:50Z", why: "retry 3 of 3 after 5m"},
		{at: "2026-01-05T12:07:50Z", do: "start", no: 4, deadline: "2026-01-05T12:08:50Z", refresh: "", why: "on timeout: disabled after 4 failures, no retry left"},
		{at: "2026-01-05T12:08:00Z", do: "fail " + failed, no: 4, refresh: "", why: "disabled after 4 failures, no retry left", reason: "thumbnail creation failed"},
		{at: "2026-01-12T12:00:00Z", do: "stay"},

		// Edited again, and twice more while its thumbnail is being made: the second thumbnail shows the last edit, and nobody hears
		// about the first.
		{at: "2026-01-12T13:00:00Z", do: "save " + edit2, no: 0, refresh: "2026-01-12T13:00:00Z", why: "saved: refresh now"},
		{at: "2026-01-12T13:00:00Z", do: "start", no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "on timeout: retry 1 of 3 at once"},
		{at: "2026-01-12T13:00:10Z", do: "save " + edit3, no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:20Z", do: "save " + edit4, no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:30Z", do: "outdated " + failed, no: 0, refresh: "2026-01-12T13:00:30Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:30Z", do: "start", no: 1, deadline: "2026-01-12T13:01:30Z", refresh: "2026-01-12T13:01:30Z", why: "on timeout: retry 1 of 3 at once"},
		{at: "2026-01-12T13:00:40Z", do: "succeed", no: 0, refresh: "", why: "finished: one-shot"},
		{at: "2026-01-19T13:00:00Z", do: "stay"},
	}, remains{
		counters: map[string]string{"create": "1", "update": "3", "start": "6", "retry": "3", "failure": "3", "timeout": "1", "exhausted": "1",
			"final_failure": "1", "outdated": "1", "success": "1", "recovered": "1", "total_retries": "3", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-01-05T12:08:00.000Z #4: thumbnail creation failed", "recovered 2026-01-12T13:00:40.000Z #1"},
	})
}

func TestAThumbnailWhoseAnswersAreAllLostIsGivenUpToo(t *testing.T) {
	tell(t, banner, []step{
		{at: "2026-01-05T12:00:00Z", do: "save " + edit1, no: 0, refresh: "2026-01-05T12:00:00Z", why: "saved: refresh now"},
		{at: "2026-01-05T12:00:00Z", do: "start", no: 1, deadline: "2026-01-05T12:01:00Z", refresh: "2026-01-05T12:01:00Z", why: "on timeout: retry 1 of 3 at once"},
		{at: "2026-01-05T12:01:00Z", do: "lost", no: 1, refresh: "2026-01-05T12:01:00Z", why: "retry 1 of 3 at once"},
		{at: "2026-01-05T12:01:00Z", do: "start", no: 2, deadline: "2026-01-05T12:02:00Z", refresh: "2026-01-05T12:03:00Z", why: "on timeout: retry 2 of 3 after 1m"},
		{at: "2026-01-05T12:02:00Z", do: "lost", no: 2, refresh: "2026-01-05T12:03:00Z", why: "retry 2 of 3 after 1m"},
		{at: "2026-01-05T12:03:00Z", do: "start", no: 3, deadline: "2026-01-05T12:04:00Z", refresh: "2026-01-05T12:09:00Z", why: "on timeout: retry 3 of 3 after 5m"},
		{at: "2026-01-05T12:04:00Z", do: "lost", no: 3, refresh: "2026-01-05T12:09:00Z", why: "retry 3 of 3 after 5m"},
		{at: "2026-01-05T12:09:00Z", do: "start", no: 4, deadline: "2026-01-05T12:10:00Z", refresh: "", why: "on timeout: disabled after 4 failures, no retry left"},
		{at: "2026-01-05T12:10:00Z", do: "lost", no: 4, refresh: "", why: "disabled after 4 failures, no retry left", reason: "Cannot refresh after 4 attempts: timeout"},
		{at: "2026-01-12T12:00:00Z", do: "stay"},
	}, remains{
		counters: map[string]string{"create": "1", "start": "4", "retry": "3", "timeout": "4", "exhausted": "1", "final_failure": "1",
			"total_retries": "3", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-01-05T12:10:00.000Z #4: Cannot refresh after 4 attempts: timeout"},
	})
}

// morning is a cycle of explicit failures, each ten minutes after the start. TODAY is the date.
var morning = []step{
	{at: "TODAY T06:00:00+01:00", do: "start", no: 1, deadline: "TODAY T07:00:00+01:00", refresh: "TODAY T07:00:00+01:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
	{at: "TODAY T06:10:00+01:00", do: "fail", no: 1, refresh: "TODAY T06:10:00+01:00", why: "retry 1 of 6 at once, ends before planned"},
	{at: "TODAY T06:10:00+01:00", do: "start", no: 2, deadline: "TODAY T07:10:00+01:00", refresh: "TODAY T07:11:00+01:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
	{at: "TODAY T06:20:00+01:00", do: "fail", no: 2, refresh: "TODAY T06:21:00+01:00", why: "retry 2 of 6 after 1m, ends before planned"},
	{at: "TODAY T06:21:00+01:00", do: "start", no: 3, deadline: "TODAY T07:21:00+01:00", refresh: "TODAY T07:26:00+01:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
	{at: "TODAY T06:31:00+01:00", do: "fail", no: 3, refresh: "TODAY T06:36:00+01:00", why: "retry 3 of 6 after 5m, ends before planned"},
	{at: "TODAY T06:36:00+01:00", do: "start", no: 4, deadline: "TODAY T07:36:00+01:00", refresh: "TODAY T07:51:00+01:00", why: "on timeout: retry 4 of 6 after 15m, ends before planned"},
	{at: "TODAY T06:46:00+01:00", do: "fail", no: 4, refresh: "TODAY T07:01:00+01:00", why: "retry 4 of 6 after 15m, ends before planned"},
	{at: "TODAY T07:01:00+01:00", do: "start", no: 5, deadline: "TODAY T08:01:00+01:00", refresh: "TODAY T08:31:00+01:00", why: "on timeout: retry 5 of 6 after 30m, ends before planned"},
	{at: "TODAY T07:11:00+01:00", do: "fail", no: 5, refresh: "TODAY T07:41:00+01:00", why: "retry 5 of 6 after 30m, ends before planned"},
	{at: "TODAY T07:41:00+01:00", do: "start", no: 6, deadline: "TODAY T08:41:00+01:00", refresh: "TODAY T09:41:00+01:00", why: "on timeout: retry 6 of 6 after 1h, ends before planned"},
	{at: "TODAY T07:51:00+01:00", do: "fail", no: 6, refresh: "TODAY T08:51:00+01:00", why: "retry 6 of 6 after 1h, ends before planned"},
	{at: "TODAY T08:51:00+01:00", do: "start", no: 7, deadline: "TODAY T09:51:00+01:00", refresh: "TODAY T16:00:00+01:00", why: "on timeout: waits for planned after 7 failures"},
	{at: "TODAY T09:01:00+01:00", do: "fail", no: 0, refresh: "TODAY T16:00:00+01:00", why: "waits for planned after 7 failures"},
}

// afternoon is a cycle in which every answer is lost: it ends after midnight. NEXT is the date of the next day.
var afternoon = []step{
	{at: "TODAY T16:00:00+01:00", do: "start", no: 1, deadline: "TODAY T17:00:00+01:00", refresh: "TODAY T17:00:00+01:00", why: "on timeout: retry 1 of 6 at once, ends before planned"},
	{at: "TODAY T17:00:00+01:00", do: "lost", no: 1, refresh: "TODAY T17:00:00+01:00", why: "retry 1 of 6 at once, ends before planned"},
	{at: "TODAY T17:00:00+01:00", do: "start", no: 2, deadline: "TODAY T18:00:00+01:00", refresh: "TODAY T18:01:00+01:00", why: "on timeout: retry 2 of 6 after 1m, ends before planned"},
	{at: "TODAY T18:00:00+01:00", do: "lost", no: 2, refresh: "TODAY T18:01:00+01:00", why: "retry 2 of 6 after 1m, ends before planned"},
	{at: "TODAY T18:01:00+01:00", do: "start", no: 3, deadline: "TODAY T19:01:00+01:00", refresh: "TODAY T19:06:00+01:00", why: "on timeout: retry 3 of 6 after 5m, ends before planned"},
	{at: "TODAY T19:01:00+01:00", do: "lost", no: 3, refresh: "TODAY T19:06:00+01:00", why: "retry 3 of 6 after 5m, ends before planned"},
	{at: "TODAY T19:06:00+01:00", do: "start", no: 4, deadline: "TODAY T20:06:00+01:00", refresh: "TODAY T20:21:00+01:00", why: "on timeout: retry 4 of 6 after 15m, ends before planned"},
	{at: "TODAY T20:06:00+01:00", do: "lost", no: 4, refresh: "TODAY T20:21:00+01:00", why: "retry 4 of 6 after 15m, ends before planned"},
	{at: "TODAY T20:21:00+01:00", do: "start", no: 5, deadline: "TODAY T21:21:00+01:00", refresh: "TODAY T21:51:00+01:00", why: "on timeout: retry 5 of 6 after 30m, ends before planned"},
	{at: "TODAY T21:21:00+01:00", do: "lost", no: 5, refresh: "TODAY T21:51:00+01:00", why: "retry 5 of 6 after 30m, ends before planned"},
	{at: "TODAY T21:51:00+01:00", do: "start", no: 6, deadline: "TODAY T22:51:00+01:00", refresh: "TODAY T23:51:00+01:00", why: "on timeout: retry 6 of 6 after 1h, ends before planned"},
	{at: "TODAY T22:51:00+01:00", do: "lost", no: 6, refresh: "TODAY T23:51:00+01:00", why: "retry 6 of 6 after 1h, ends before planned"},
	{at: "TODAY T23:51:00+01:00", do: "start", no: 7, deadline: "NEXT T00:51:00+01:00", refresh: "NEXT T06:00:00+01:00", why: "on timeout: waits for planned after 7 failures"},
	{at: "NEXT T00:51:00+01:00", do: "lost", no: 0, refresh: "NEXT T06:00:00+01:00", why: "waits for planned after 7 failures"},
}

// TestABigTableIsGivenUpOnlyAfterAWeekWithoutASuccess lets a policy go on with the next planned refresh for a week: the model goes on until then, and no
// longer, though the list of retries was used up 14 times and the next refresh is planned for that very moment.
func TestABigTableIsGivenUpOnlyAfterAWeekWithoutASuccess(t *testing.T) {
	const goesOn = at6And16 + `"timezone":"Europe/Berlin","policy":{` + sixRetries + `,"give_up_after":"7d","on_exhausted":"next_planned"}`
	steps := []step{{at: "2026-01-04T20:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T06:00:00+01:00", why: "planned"}}
	for day := 5; day < 12; day++ {
		today, next := fmt.Sprintf("2026-01-%02d", day), fmt.Sprintf("2026-01-%02d", day+1)
		steps = append(steps, on(today, next, morning)...)
		steps = append(steps, on(today, next, afternoon)...)
	}
	last := len(steps) - 1
	steps[last-1].why, steps[last].why = "on timeout: gives up then: no success for 1w", "gives up then: no success for 1w"
	steps = append(steps,
		step{at: "2026-01-12T06:00:00+01:00", do: "give_up", no: 0, refresh: "", why: "disabled, no success for 1w", reason: "Cannot refresh: no success for 1w"},
		step{at: "2026-01-12T16:00:00+01:00", do: "stay"},
	)
	// 14 cycles of 7 attempts
	tell(t, goesOn, steps, remains{counters: map[string]string{"create": "1", "start": "98", "retry": "84", "failure": "49", "timeout": "49", "exhausted": "14",
		"total_retries": "84", "retried_cycles": "14", "give_up": "1", "final_failure": "1"},
		outbox: []string{"disabled 2026-01-12T05:00:00.000Z #0: Cannot refresh: no success for 1w"}})
}

func on(today, next string, cycle []step) []step {
	dates := strings.NewReplacer("TODAY ", today, "NEXT ", next)
	dated := make([]step, len(cycle))
	for i, s := range cycle {
		s.at, s.deadline, s.refresh = dates.Replace(s.at), dates.Replace(s.deadline), dates.Replace(s.refresh)
		dated[i] = s
	}
	return dated
}
