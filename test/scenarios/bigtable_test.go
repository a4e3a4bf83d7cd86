package scenarios

import "testing"

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
		{at: "2026-01-05T06:00:00+01:00", do: "start", no: 1, deadline: "2026-01-05T07:00:00+01:00", refresh: "2026-01-05T07:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-01-05T06:10:00+01:00", do: `fail "reason":"HTTP 404"`, no: 1, refresh: "2026-01-05T06:10:00+01:00", why: "retry 1/6 at once, before planned"},
		{at: "2026-01-05T06:10:00+01:00", do: "start", no: 2, deadline: "2026-01-05T07:10:00+01:00", refresh: "2026-01-05T07:11:00+01:00", why: "if lost: retry 2/6 +1m, before planned"},
		{at: "2026-01-05T07:10:00+01:00", do: "lost", no: 2, refresh: "2026-01-05T07:11:00+01:00", why: "retry 2/6 +1m, before planned"},
		{at: "2026-01-05T07:11:00+01:00", do: "start", no: 3, deadline: "2026-01-05T08:11:00+01:00", refresh: "2026-01-05T08:16:00+01:00", why: "if lost: retry 3/6 +5m, before planned"},
		{at: "2026-01-05T07:30:00+01:00", do: `fail "reason":"HTTP 404"`, no: 3, refresh: "2026-01-05T07:35:00+01:00", why: "retry 3/6 +5m, before planned"},
		{at: "2026-01-05T07:35:00+01:00", do: "start", no: 4, deadline: "2026-01-05T08:35:00+01:00", refresh: "2026-01-05T08:50:00+01:00", why: "if lost: retry 4/6 +15m, before planned"},
		{at: "2026-01-05T08:35:00+01:00", do: "lost", no: 4, refresh: "2026-01-05T08:50:00+01:00", why: "retry 4/6 +15m, before planned"},
		{at: "2026-01-05T08:50:00+01:00", do: "start", no: 5, deadline: "2026-01-05T09:50:00+01:00", refresh: "2026-01-05T10:20:00+01:00", why: "if lost: retry 5/6 +30m, before planned"},
		{at: "2026-01-05T09:00:00+01:00", do: `fail "reason":"HTTP 404"`, no: 5, refresh: "2026-01-05T09:30:00+01:00", why: "retry 5/6 +30m, before planned"},
		{at: "2026-01-05T09:30:00+01:00", do: "start", no: 6, deadline: "2026-01-05T10:30:00+01:00", refresh: "2026-01-05T11:30:00+01:00", why: "if lost: retry 6/6 +1h, before planned"},
		{at: "2026-01-05T10:30:00+01:00", do: "lost", no: 6, refresh: "2026-01-05T11:30:00+01:00", why: "retry 6/6 +1h, before planned"},
		{at: "2026-01-05T11:30:00+01:00", do: "start", no: 7, deadline: "2026-01-05T12:30:00+01:00", refresh: "", why: "if lost: final: exhausted after 7"},
		{at: "2026-01-05T12:30:00+01:00", do: "lost", no: 7, refresh: "", why: "final: exhausted after 7", reason: "Cannot refresh after 7 attempts: timeout"},

		// Disabled: 4 PM passes, and so does the next morning. Then the owner mends the address, in the afternoon, and need not
		// wait for 4 PM.
		{at: "2026-01-05T16:00:00+01:00", do: "stay"},
		{at: "2026-01-06T06:00:00+01:00", do: "stay"},
		{at: "2026-01-06T15:30:00+01:00", do: "save " + otherFeed, no: 0, refresh: "2026-01-06T15:30:00+01:00", why: "saved: refresh now"},
		{at: "2026-01-06T15:30:00+01:00", do: "start", no: 1, deadline: "2026-01-06T16:30:00+01:00", refresh: "2026-01-06T16:30:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-01-06T16:20:00+01:00", do: "succeed", no: 0, refresh: "2026-01-07T06:00:00+01:00", why: "planned"},
		{at: "2026-01-07T06:00:00+01:00", do: "start", no: 1, deadline: "2026-01-07T07:00:00+01:00", refresh: "2026-01-07T07:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
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
		{at: "2026-07-05T06:00:00+02:00", do: "start", no: 1, deadline: "2026-07-05T07:00:00+02:00", refresh: "2026-07-05T07:00:00+02:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-07-05T07:00:00+02:00", do: "lost", no: 1, refresh: "2026-07-05T07:00:00+02:00", why: "retry 1/6 at once, before planned"},
		{at: "2026-07-05T07:00:00+02:00", do: "start", no: 2, deadline: "2026-07-05T08:00:00+02:00", refresh: "2026-07-05T08:01:00+02:00", why: "if lost: retry 2/6 +1m, before planned"},
		{at: "2026-07-05T08:00:00+02:00", do: "lost", no: 2, refresh: "2026-07-05T08:01:00+02:00", why: "retry 2/6 +1m, before planned"},
		{at: "2026-07-05T08:01:00+02:00", do: "start", no: 3, deadline: "2026-07-05T09:01:00+02:00", refresh: "2026-07-05T09:06:00+02:00", why: "if lost: retry 3/6 +5m, before planned"},
		{at: "2026-07-05T09:01:00+02:00", do: "lost", no: 3, refresh: "2026-07-05T09:06:00+02:00", why: "retry 3/6 +5m, before planned"},
		{at: "2026-07-05T09:06:00+02:00", do: "start", no: 4, deadline: "2026-07-05T10:06:00+02:00", refresh: "2026-07-05T10:21:00+02:00", why: "if lost: retry 4/6 +15m, before planned"},
		{at: "2026-07-05T10:06:00+02:00", do: "lost", no: 4, refresh: "2026-07-05T10:21:00+02:00", why: "retry 4/6 +15m, before planned"},
		{at: "2026-07-05T10:21:00+02:00", do: "start", no: 5, deadline: "2026-07-05T11:21:00+02:00", refresh: "2026-07-05T11:51:00+02:00", why: "if lost: retry 5/6 +30m, before planned"},
		{at: "2026-07-05T11:21:00+02:00", do: "lost", no: 5, refresh: "2026-07-05T11:51:00+02:00", why: "retry 5/6 +30m, before planned"},
		{at: "2026-07-05T11:51:00+02:00", do: "start", no: 6, deadline: "2026-07-05T12:51:00+02:00", refresh: "2026-07-05T13:51:00+02:00", why: "if lost: retry 6/6 +1h, before planned"},
		{at: "2026-07-05T12:51:00+02:00", do: "lost", no: 6, refresh: "2026-07-05T13:51:00+02:00", why: "retry 6/6 +1h, before planned"},
		{at: "2026-07-05T13:51:00+02:00", do: "start", no: 7, deadline: "2026-07-05T14:51:00+02:00", refresh: "", why: "if lost: final: exhausted after 7"},
		{at: "2026-07-05T14:51:00+02:00", do: "lost", no: 7, refresh: "", why: "final: exhausted after 7", reason: "Cannot refresh after 7 attempts: timeout"},
		{at: "2026-07-05T16:00:00+02:00", do: "stay"},
	}, remains{
		counters: map[string]string{"create": "1", "start": "7", "retry": "6", "timeout": "7", "exhausted": "1", "final_failure": "1",
			"total_retries": "6", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-07-05T12:51:00.000Z #7: Cannot refresh after 7 attempts: timeout"},
	})
}

// Clocks go forward at 2 AM on 8 March 2026. An hour is an hour all the same, and 6 AM is 6 AM.
func TestRetriesThroughTheNightOfTheChangeToSummerTimeMeetThePlannedRefresh(t *testing.T) {
	tell(t, newYork, []step{
		{at: "2026-03-07T15:00:00-05:00", do: "save " + feed, no: 0, refresh: "2026-03-07T16:00:00-05:00", why: "planned"},
		{at: "2026-03-07T16:00:00-05:00", do: "start", no: 1, deadline: "2026-03-07T17:00:00-05:00", refresh: "2026-03-07T17:00:00-05:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-03-07T16:30:00-05:00", do: "succeed", no: 0, refresh: "2026-03-08T06:00:00-04:00", why: "planned"},

		{at: "2026-03-08T01:10:00-05:00", do: "run", no: 0, refresh: "2026-03-08T01:10:00-05:00", why: "run by hand"},
		{at: "2026-03-08T01:10:00-05:00", do: "start", no: 1, deadline: "2026-03-08T03:10:00-04:00", refresh: "2026-03-08T03:10:00-04:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-03-08T03:10:00-04:00", do: "lost", no: 1, refresh: "2026-03-08T03:10:00-04:00", why: "retry 1/6 at once, before planned"},
		{at: "2026-03-08T03:10:00-04:00", do: "start", no: 2, deadline: "2026-03-08T04:10:00-04:00", refresh: "2026-03-08T04:11:00-04:00", why: "if lost: retry 2/6 +1m, before planned"},
		{at: "2026-03-08T04:10:00-04:00", do: "lost", no: 2, refresh: "2026-03-08T04:11:00-04:00", why: "retry 2/6 +1m, before planned"},

		// 05:11 and 5 minutes and an hour is after 6 AM: that refresh is the retry
		{at: "2026-03-08T04:11:00-04:00", do: "start", no: 3, deadline: "2026-03-08T05:11:00-04:00", refresh: "2026-03-08T06:00:00-04:00", why: "if lost: retry 3/6 +5m, planned first: overlaps start"},
		{at: "2026-03-08T05:11:00-04:00", do: "lost", no: 3, refresh: "2026-03-08T06:00:00-04:00", why: "retry 3/6 +5m, planned first: overlaps start"},
		{at: "2026-03-08T06:00:00-04:00", do: "start", no: 4, deadline: "2026-03-08T07:00:00-04:00", refresh: "2026-03-08T07:15:00-04:00", why: "if lost: retry 4/6 +15m, before planned"},
		{at: "2026-03-08T06:30:00-04:00", do: "succeed", no: 0, refresh: "2026-03-08T16:00:00-04:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "run": "1", "start": "5", "retry": "3", "timeout": "3", "success": "2",
		"total_retries": "3", "successful_retries": "1", "retried_cycles": "1"}})
}

// Clocks go back at 2 AM on 1 November 2026: from 1 AM to 2 AM comes twice.
func TestRetriesThroughTheNightOfTheChangeToWinterTimeMeetThePlannedRefresh(t *testing.T) {
	tell(t, newYork, []step{
		{at: "2026-10-31T17:00:00-04:00", do: "save " + feed, no: 0, refresh: "2026-11-01T06:00:00-05:00", why: "planned"},
		{at: "2026-11-01T00:30:00-04:00", do: "run", no: 0, refresh: "2026-11-01T00:30:00-04:00", why: "run by hand"},
		{at: "2026-11-01T00:30:00-04:00", do: "start", no: 1, deadline: "2026-11-01T01:30:00-04:00", refresh: "2026-11-01T01:30:00-04:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-11-01T01:30:00-04:00", do: "lost", no: 1, refresh: "2026-11-01T01:30:00-04:00", why: "retry 1/6 at once, before planned"},
		{at: "2026-11-01T01:30:00-04:00", do: "start", no: 2, deadline: "2026-11-01T01:30:00-05:00", refresh: "2026-11-01T01:31:00-05:00", why: "if lost: retry 2/6 +1m, before planned"},
		{at: "2026-11-01T01:30:00-05:00", do: "lost", no: 2, refresh: "2026-11-01T01:31:00-05:00", why: "retry 2/6 +1m, before planned"},
		{at: "2026-11-01T01:31:00-05:00", do: "start", no: 3, deadline: "2026-11-01T02:31:00-05:00", refresh: "2026-11-01T02:36:00-05:00", why: "if lost: retry 3/6 +5m, before planned"},
		{at: "2026-11-01T02:31:00-05:00", do: "lost", no: 3, refresh: "2026-11-01T02:36:00-05:00", why: "retry 3/6 +5m, before planned"},
		{at: "2026-11-01T02:36:00-05:00", do: "start", no: 4, deadline: "2026-11-01T03:36:00-05:00", refresh: "2026-11-01T03:51:00-05:00", why: "if lost: retry 4/6 +15m, before planned"},
		{at: "2026-11-01T03:36:00-05:00", do: "lost", no: 4, refresh: "2026-11-01T03:51:00-05:00", why: "retry 4/6 +15m, before planned"},
		{at: "2026-11-01T03:51:00-05:00", do: "start", no: 5, deadline: "2026-11-01T04:51:00-05:00", refresh: "2026-11-01T06:00:00-05:00", why: "if lost: retry 5/6 +30m, planned first: overlaps start"},
		{at: "2026-11-01T04:51:00-05:00", do: "lost", no: 5, refresh: "2026-11-01T06:00:00-05:00", why: "retry 5/6 +30m, planned first: overlaps start"},
		{at: "2026-11-01T06:00:00-05:00", do: "start", no: 6, deadline: "2026-11-01T07:00:00-05:00", refresh: "2026-11-01T08:00:00-05:00", why: "if lost: retry 6/6 +1h, before planned"},
		{at: "2026-11-01T06:05:00-05:00", do: "succeed", no: 0, refresh: "2026-11-01T16:00:00-05:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "run": "1", "start": "6", "retry": "5", "timeout": "5", "success": "1",
		"total_retries": "5", "successful_retries": "1", "retried_cycles": "1"}})
}

func TestARetryThatEndsExactlyAtThePlannedRefreshRunsAndOneThatEndsLaterWaits(t *testing.T) {
	tell(t, berlin, []step{
		{at: "2026-01-05T13:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T16:00:00+01:00", why: "planned"},
		{at: "2026-01-05T14:30:00+01:00", do: "run", no: 0, refresh: "2026-01-05T14:30:00+01:00", why: "run by hand"},
		{at: "2026-01-05T14:30:00+01:00", do: "start", no: 1, deadline: "2026-01-05T15:30:00+01:00", refresh: "2026-01-05T16:00:00+01:00", why: "if lost: retry 1/6 at once, planned first: overlaps start"},
		{at: "2026-01-05T15:00:00+01:00", do: "fail", no: 1, refresh: "2026-01-05T15:00:00+01:00", why: "retry 1/6 at once, before planned"},
		{at: "2026-01-05T15:00:00+01:00", do: "start", no: 2, deadline: "2026-01-05T16:00:00+01:00", refresh: "2026-01-05T16:01:00+01:00", why: "if lost: retry 2/6 +1m, before planned"},
		{at: "2026-01-05T15:00:01+01:00", do: "fail", no: 2, refresh: "2026-01-05T16:00:00+01:00", why: "retry 2/6 +1m, planned first: overlaps start"},
		{at: "2026-01-05T16:00:00+01:00", do: "start", no: 3, deadline: "2026-01-05T17:00:00+01:00", refresh: "2026-01-05T17:05:00+01:00", why: "if lost: retry 3/6 +5m, before planned"},
		{at: "2026-01-05T16:00:01+01:00", do: "succeed", no: 0, refresh: "2026-01-06T06:00:00+01:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "run": "1", "start": "3", "retry": "2", "failure": "2", "success": "1",
		"total_retries": "2", "successful_retries": "1", "retried_cycles": "1"}})
}

func TestWorkersThatAreDownForTheMorningCostNoRetry(t *testing.T) {
	tell(t, berlin, []step{
		{at: "2026-01-04T20:00:00+01:00", do: "save " + feed, no: 0, refresh: "2026-01-05T06:00:00+01:00", why: "planned"},
		{at: "2026-01-05T06:00:00+01:00", do: "queue", no: 1, deadline: "2026-01-05T07:00:00+01:00", refresh: "2026-01-05T07:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-01-05T07:00:00+01:00", do: "withdraw", no: 0, refresh: "2026-01-05T07:00:00+01:00", why: "withdrawn: no worker took it"},
		{at: "2026-01-05T07:00:00+01:00", do: "queue", no: 1, deadline: "2026-01-05T08:00:00+01:00", refresh: "2026-01-05T08:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-01-05T08:00:00+01:00", do: "withdraw", no: 0, refresh: "2026-01-05T08:00:00+01:00", why: "withdrawn: no worker took it"},
		{at: "2026-01-05T08:00:00+01:00", do: "start", no: 1, deadline: "2026-01-05T09:00:00+01:00", refresh: "2026-01-05T09:00:00+01:00", why: "if lost: retry 1/6 at once, before planned"},
		{at: "2026-01-05T08:10:00+01:00", do: "succeed", no: 0, refresh: "2026-01-05T16:00:00+01:00", why: "planned"},
	}, remains{counters: map[string]string{"create": "1", "start": "3", "withdrawn": "2", "success": "1"}})
}
