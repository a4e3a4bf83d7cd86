package scenarios

import "testing"

// The banner: allow 1 minute; retry at once, after 1 minute, after 5 minutes; then give up.
const banner = `"policy":{"timeout":"1 minute","retries":[0,"1 minute","5 minutes"],"on_exhausted":"give_up"}`

const edit1, edit2, edit3, edit4 = `"payload":{"input_url":"/v1"}`, `"payload":{"input_url":"/v2"}`, `"payload":{"input_url":"/v3"}`, `"payload":{"input_url":"/v4"}`

func TestAThumbnailIsMadeAfterEachEditOrItsOwnerReadsWhyNot(t *testing.T) {
	const failed = `"reason":"HTTP 500","user_friendly_reason":"thumbnail creation failed"`
	tell(t, banner, []step{
		// Saved: at once, and after four failures not again. The third answer is lost.
		{at: "2026-01-05T12:00:00Z", do: "save " + edit1, no: 0, refresh: "2026-01-05T12:00:00Z", why: "saved: refresh now"},
		{at: "2026-01-05T12:00:00Z", do: "start", no: 1, deadline: "2026-01-05T12:01:00Z", refresh: "2026-01-05T12:01:00Z", why: "if lost: retry 1/3 at once, none planned"},
		{at: "2026-01-05T12:00:20Z", do: "fail " + failed, no: 1, refresh: "2026-01-05T12:00:20Z", why: "retry 1/3 at once, none planned"},
		{at: "2026-01-05T12:00:20Z", do: "start", no: 2, deadline: "2026-01-05T12:01:20Z", refresh: "2026-01-05T12:02:20Z", why: "if lost: retry 2/3 +1m, none planned"},
		{at: "2026-01-05T12:00:50Z", do: "fail " + failed, no: 2, refresh: "2026-01-05T12:01:50Z", why: "retry 2/3 +1m, none planned"},
		{at: "2026-01-05T12:01:50Z", do: "start", no: 3, deadline: "2026-01-05T12:02:50Z", refresh: "2026-01-05T12:07:50Z", why: "if lost: retry 3/3 +5m, none planned"},
		{at: "2026-01-05T12:02:50Z", do: "lost", no: 3, refresh: "2026-01-05T12:07:50Z", why: "retry 3/3 +5m, none planned"},
		{at: "2026-01-05T12:07:50Z", do: "start", no: 4, deadline: "2026-01-05T12:08:50Z", refresh: "", why: "if lost: final: exhausted after 4"},
		{at: "2026-01-05T12:08:00Z", do: "fail " + failed, no: 4, refresh: "", why: "final: exhausted after 4", reason: "thumbnail creation failed"},
		{at: "2026-01-12T12:00:00Z", do: "stay"},

		// Edited again, and twice more while its thumbnail is being made: the second thumbnail shows the last edit, and nobody is told
		// what became of the first.
		{at: "2026-01-12T13:00:00Z", do: "save " + edit2, no: 0, refresh: "2026-01-12T13:00:00Z", why: "saved: refresh now"},
		{at: "2026-01-12T13:00:00Z", do: "start", no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "if lost: retry 1/3 at once, none planned"},
		{at: "2026-01-12T13:00:10Z", do: "save " + edit3, no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:20Z", do: "save " + edit4, no: 1, deadline: "2026-01-12T13:01:00Z", refresh: "2026-01-12T13:01:00Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:30Z", do: "outdated " + failed, no: 0, refresh: "2026-01-12T13:00:30Z", why: "saved while running: again"},
		{at: "2026-01-12T13:00:30Z", do: "start", no: 1, deadline: "2026-01-12T13:01:30Z", refresh: "2026-01-12T13:01:30Z", why: "if lost: retry 1/3 at once, none planned"},
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
		{at: "2026-01-05T12:00:00Z", do: "start", no: 1, deadline: "2026-01-05T12:01:00Z", refresh: "2026-01-05T12:01:00Z", why: "if lost: retry 1/3 at once, none planned"},
		{at: "2026-01-05T12:01:00Z", do: "lost", no: 1, refresh: "2026-01-05T12:01:00Z", why: "retry 1/3 at once, none planned"},
		{at: "2026-01-05T12:01:00Z", do: "start", no: 2, deadline: "2026-01-05T12:02:00Z", refresh: "2026-01-05T12:03:00Z", why: "if lost: retry 2/3 +1m, none planned"},
		{at: "2026-01-05T12:02:00Z", do: "lost", no: 2, refresh: "2026-01-05T12:03:00Z", why: "retry 2/3 +1m, none planned"},
		{at: "2026-01-05T12:03:00Z", do: "start", no: 3, deadline: "2026-01-05T12:04:00Z", refresh: "2026-01-05T12:09:00Z", why: "if lost: retry 3/3 +5m, none planned"},
		{at: "2026-01-05T12:04:00Z", do: "lost", no: 3, refresh: "2026-01-05T12:09:00Z", why: "retry 3/3 +5m, none planned"},
		{at: "2026-01-05T12:09:00Z", do: "start", no: 4, deadline: "2026-01-05T12:10:00Z", refresh: "", why: "if lost: final: exhausted after 4"},
		{at: "2026-01-05T12:10:00Z", do: "lost", no: 4, refresh: "", why: "final: exhausted after 4", reason: "Cannot refresh after 4 attempts: timeout"},
		{at: "2026-01-12T12:00:00Z", do: "stay"},
	}, remains{
		counters: map[string]string{"create": "1", "start": "4", "retry": "3", "timeout": "4", "exhausted": "1", "final_failure": "1",
			"total_retries": "3", "retried_cycles": "1"},
		outbox: []string{"disabled 2026-01-05T12:10:00.000Z #4: Cannot refresh after 4 attempts: timeout"},
	})
}
