package store

import (
	"fmt"
	"maps"

	"github.com/refreshd/refreshd/model/policy"
)

// Two fingerprints: "http: 503", and another one.
const (
	http503    = "a1aa3df6dea9"
	otherError = "0123456789ab"
)

// http503Hash is what is known of the first once m1 has failed by it at six.
var http503Hash = hash{
	"signature": "http: 503", "reason": "503", "error_type": "http", "uid": "m1", "uids": "m1",
	"first_at": "2026-11-21T06:00:00.000Z", "last_at": "2026-11-21T06:00:00.000Z", "failures": "1", "began": "1",
}

// newError is what the operators are told of it.
var newError = map[string]any{
	"event": "new_error", "at": "2026-11-21T06:00:00.000Z", "error": http503, "signature": "http: 503", "models": "51", "reason": "503",
}

// failingModel fails by a fingerprint since five, and its second attempt runs.
func failingModel(fingerprint string) hash {
	return but(running, "attempt_no", "2", "failing_since", "2026-11-21T05:00:00.000Z", "error", fingerprint)
}

// failingKeys are a failing model and what is known of fingerprints.
func failingKeys(fingerprint string, known keys) keys {
	return and(runningKeys(), answered, keys{":model:m1": failingModel(fingerprint), ":failing": scores{"m1": six - 60*minute}}, known)
}

// failedKeys are the same when it has failed again.
func failedKeys(fingerprint string, known keys) keys {
	return and(rest, keys{
		":model:m1": ended(failingModel(fingerprint), "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "retry 2/3 +1m, none planned",
			"refresh_for", "retry", "total_retries", "1", "retried_cycles", "1"),
		":payload:m1": `{"input_url":"u"}`, ":due": scores{"m1": six + minute}, ":running": scores{"m2": six},
		":journal":    events{{"event": "failure", "ended_attempt_no": "2", "reason": "503", "error_type": "http"}},
		":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"failure","limit":600000,"reason":"503","type":"http","delay":60000,"next":60000,"of":3}`},
		":failing":    scores{"m1": six - 60*minute}, ":stats": hash{"failure": "1", "total_retries": "1", "retried_cycles": "1"},
	}, known)
}

func fail503(b *bench, r *Record) *Transition {
	return r.Decide(r.Fail(policy.Failure{Reason: "503", ErrorType: "http"}, b.now), b.now)
}

// manyErrors are so many fingerprints by which models are failing, two by the other one.
func manyErrors(n int) scores {
	all := scores{otherError: 2}
	for i := len(all); i < n; i++ {
		all[fmt.Sprintf("%012x", i)] = 1
	}
	return all
}

// counting returns a copy of counts with others in place.
func counting(counts scores, others scores) scores {
	counts = maps.Clone(counts)
	maps.Copy(counts, others)
	return counts
}

// failureCases are failures by fingerprint, and who is told.
var failureCases = []eventCase{
	{
		name: "failure by the same fingerprint as before", answers: "oanswer", act: fail503,
		seed: failingKeys(http503, keys{":errors": scores{http503: 2}, ":error:" + http503: http503Hash}),
		want: failedKeys(http503, keys{":errors": scores{http503: 2},
			":error:" + http503: but(http503Hash, "last_at", "2026-11-21T06:00:00.000Z", "failures", "2")}),
	},
	{
		name: "failure by another signature", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": scores{http503: 1, otherError: 2}, ":error:" + otherError: hash{"began": "2"},
			":error:" + http503: but(http503Hash, "uids", "m4 m1 m3", "first_at", "2026-11-21T05:00:00.000Z", "began", "4", "ended", "3", "failures", "7")}),
		want: failedKeys(http503, keys{":errors": scores{http503: 2, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "uids", "m1 m4 m3", "first_at", "2026-11-21T05:00:00.000Z", "began", "5", "ended", "3", "failures", "8")}),
	},
	{
		name: "failure by a fingerprint that is past, of the last model of another one", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": scores{otherError: 1}, ":error:" + otherError: hash{"began": "1"},
			":past_errors": scores{http503: six - 1, "old": six - 24*60*minute}, ":error:" + http503: but(http503Hash, "ended", "1")}),
		want: failedKeys(http503, keys{":errors": scores{http503: 1}, ":error:" + otherError: hash{"began": "1", "ended": "1"}, ":past_errors": scores{otherError: six},
			":error:" + http503: but(http503Hash, "ended", "1", "began", "2", "failures", "2")}),
	},
	{
		name: "failure by a fingerprint beyond those that are kept apart", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": manyErrors(1000), ":error:" + otherError: hash{"began": "2"}}),
		want: failedKeys("other", keys{":errors": counting(manyErrors(1000), scores{otherError: 1, "other": 1}), ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:other": but(http503Hash, "signature", "other")}),
	},
	{
		name: "failure again by a fingerprint beyond those that are kept apart", answers: "oanswer", act: fail503,
		seed: failingKeys("other", keys{":errors": counting(manyErrors(1000), scores{"other": 2}), ":error:other": but(http503Hash, "signature", "other")}),
		want: failedKeys("other", keys{":errors": counting(manyErrors(1000), scores{"other": 2}), ":error:other": but(http503Hash, "signature", "other", "failures", "2")}),
	},
	{
		name: "failure that stops more models than may be untold", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": scores{http503: 50, otherError: 2}, ":error:" + otherError: hash{"began": "2"}, ":error:" + http503: but(http503Hash, "told_ms", "1795154400000")}),
		want: failedKeys(http503, keys{":errors": scores{http503: 51, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "began", "2", "failures", "2", "told_ms", "1795240800000"), ":outbox": events{newError}}),
	},
	{
		name: "failure that stops more models, of which somebody was told today", answers: "oanswer", act: fail503,
		seed: failingKeys(otherError, keys{":errors": scores{http503: 50, otherError: 2}, ":error:" + otherError: hash{"began": "2"}, ":error:" + http503: but(http503Hash, "told_ms", "1795154400001")}),
		want: failedKeys(http503, keys{":errors": scores{http503: 51, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "began", "2", "failures", "2", "told_ms", "1795154400001")}),
	},
	{
		name: "success of the last model of a signature", answers: "oanswer", act: successOf,
		seed: failingKeys(http503, keys{":errors": scores{http503: 1}, ":error:" + http503: http503Hash}),
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "total_retries", "1", "successful_retries", "1", "retried_cycles", "1"),
			":past_errors": scores{http503: six}, ":error:" + http503: but(http503Hash, "ended", "1"),
			":journal":    events{{"event": "success", "ended_attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"success","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
		}),
	},
}
