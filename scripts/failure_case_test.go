package scripts

import (
	"fmt"
	"maps"

	"github.com/refreshd/refreshd/model/policy"
)

// Two signatures: "http: 503", and another one.
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

// failingModel fails by a signature since five, and its second attempt runs.
func failingModel(signature string) hash {
	return but(running, "attempt_no", "2", "failing_since", "2026-11-21T05:00:00.000Z", "error", signature)
}

// failingKeys are a failing model and what is known of signatures.
func failingKeys(signature string, known keys) keys {
	return and(runningKeys(), answered, keys{":model:m1": failingModel(signature), ":failing": scores{"m1": six - 60*minute}}, known)
}

// failedKeys are the same when it has failed again.
func failedKeys(signature string, known keys) keys {
	return and(rest, keys{
		":model:m1": ended(failingModel(signature), "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "retry 2/3 +1m, none planned",
			"refresh_for", "retry", "total_retries", "1", "retried_cycles", "1"),
		":payload:m1": `{"input_url":"u"}`,
		":due":        scores{"m1": six + minute},
		":running":    scores{"m2": six},
		":journal":    events{{"event": "failure", "ended_attempt_no": "2", "reason": "503", "error_type": "http"}},
		":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"failure","limit":600000,"reason":"503","type":"http","delay":60000,"next":60000,"of":3}`},
		":failing":    scores{"m1": six - 60*minute},
		":stats":      hash{"failure": "1", "total_retries": "1", "retried_cycles": "1"},
	}, known)
}

func fail503(b *bench, r *Record) *Transition {
	return r.Decide(r.Fail(policy.Failure{Reason: "503", ErrorType: "http"}, b.now), b.now)
}

// manyErrors are so many signatures by which models are failing, two by the other one.
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
