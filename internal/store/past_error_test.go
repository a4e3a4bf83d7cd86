package store

import "fmt"

// pastErrors are fingerprints of which the last models have ceased to fail one after the other.
func pastErrors(from, to int) scores {
	past := scores{}
	for i := range to - from {
		past[fmt.Sprintf("past%03d", from+i)] = six - 1000 + float64(from+i)
	}
	return past
}

var pastErrorCases = []eventCase{
	{
		name: "failure by a fingerprint that the cap has forgotten", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": scores{otherError: 2}, ":error:" + otherError: hash{"began": "2"},
			":error:" + http503: but(http503Hash, "uids", "m9", "first_at", "2026-11-20T05:00:00.000Z", "began", "4", "ended", "4", "failures", "7")}),
		want: failedKeys(http503, keys{":errors": scores{http503: 1, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"}, ":error:" + http503: http503Hash}),
	},
	{
		name: "success of the last model of a signature, when as many as are kept are past", answers: "oanswer", act: successOf,
		seed: failingKeys(http503, keys{":errors": scores{http503: 1}, ":error:" + http503: http503Hash, ":past_errors": pastErrors(0, 1000)}),
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "fence", "", "total_retries", "1", "successful_retries", "1", "retried_cycles", "1"),
			":past_errors": counting(pastErrors(1, 1000), scores{http503: six}), ":error:" + http503: but(http503Hash, "ended", "1"),
			":journal":    events{{"event": "success", "ended_attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
		}),
	},
}
