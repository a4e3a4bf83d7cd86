package store

import (
	"fmt"
	"maps"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var resultCases = []eventCase{
	{
		name: "success", answers: "oanswer",
		seed: and(runningKeys(), answered),
		act: func(b *bench, r *Record) *Transition {
			no := false
			return r.Decide(r.Succeed(b.now, &no), b.now)
		},
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "fence", ""),
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "changed": "false"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","limit":600000,"changed":false,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "success_unchanged": "1"},
		}),
	},
	{
		name: "success with a log", answers: "oanswer",
		seed: and(runningKeys(), answered, keys{":logs": list{"old"}}),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Handle(model.Message{Type: model.MessageSuccess, AttemptUID: "a1", Log: "1 row\n<b>"}, b.now)
			return r.Decide(decision, b.now)
		},
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "fence", ""),
			":journal":    events{{"event": "success", "ended_attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","limit":600000,"log":9,"why":"finished: one-shot"}`},
			":logs":       list{"old", `{"uid":"m1","attempt_uid":"a1","at":"2026-11-21T06:00:00.000Z","log":"1 row\n<b>"}`},
			":stats":      hash{"success": "1"},
		}),
	},
	{
		name: "success of a retry after a final failure", answers: "oanswer", act: successOf,
		seed: and(runningKeys(), answered, keys{":model:m1": but(running, "final_failure_at", "2026-11-20T06:00:00.000Z",
			"failing_since", "2026-11-20T06:00:00.000Z", "deferrals", "2", "again", "1", "attempt_no", "2",
			"total_retries", "7", "successful_retries", "2", "retried_cycles", "3")}),
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "saved while running: again", "refresh_for", "change",
				"attempt_no", "", "trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "fence", "",
				"total_retries", "8", "successful_retries", "3", "retried_cycles", "4"),
			":urgent": scores{"m1": six}, ":journal": events{{"event": "success", "ended_attempt_no": "2"}},
			":outbox":     events{{"event": "recovered", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"limit":600000,"next":0,"why":"saved while running: again"}`},
			":stats":      hash{"success": "1", "recovered": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
			":wake":       list{"1"},
		}),
	},
	{
		name: "failure with a retry", answers: "oanswer", act: fail503,
		seed: and(runningKeys(), answered, keys{":model:m1": but(running, "attempt_no", "2")}),
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "attempt_no", "2", "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "retry 2 of 3 after 1m", "refresh_for", "retry",
				"failing_since", "2026-11-21T06:00:00.000Z", "error", http503, "total_retries", "1", "retried_cycles", "1"),
			":errors": scores{http503: 1}, ":error:" + http503: http503Hash, ":due": scores{"m1": six + minute},
			":journal":    events{{"event": "failure", "ended_attempt_no": "2", "reason": "503", "error_type": "http"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"failure","limit":600000,"reason":"503","type":"http","delay":60000,"next":60000,"of":3}`},
			":failing":    scores{"m1": six}, ":stats": hash{"failure": "1", "total_retries": "1", "retried_cycles": "1"},
		}),
	},
	{
		name: "final failure", answers: "oanswer",
		seed: and(runningKeys(), answered, keys{":model:m1": but(running, "attempt_no", "4", "failing_since", "2026-11-21T05:00:00.000Z"), ":failing": scores{"m1": six - 60*minute}}),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Fail(policy.Failure{Reason: "404", UserFriendlyReason: "The feed is gone"}, b.now), b.now)
		},
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "attempt_no", "4", "refresh_at", "", "refresh_why", "disabled after 4 failures, nothing planned",
				"failing_since", "2026-11-21T05:00:00.000Z", "error", "6b3c238ebcf1", "final_failure_at", "2026-11-21T06:00:00.000Z",
				"refresh_disabled_until_update", "1", "refresh_disabled_at", "2026-11-21T06:00:00.000Z", "refresh_disabled_by", "policy", "refresh_disabled_user_friendly_reason", "The feed is gone", "total_retries", "1"),
			":journal": events{{"event": "failure", "ended_attempt_no": "4", "reason": "404", "final": "1"}},
			":outbox": events{{
				"event": "disabled", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "4", "reason": "The feed is gone",
				"refresh_why": "disabled after 4 failures, nothing planned",
			}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":4,"is":"failure","limit":600000,"final":true,"exhausted":true,"reason":"404","why":"disabled after 4 failures, nothing planned"}`},
			":failing":    scores{"m1": six - 60*minute}, ":errors": scores{"6b3c238ebcf1": 1},
			":error:6b3c238ebcf1": hash{"signature": "404", "reason": "404", "error_type": "", "uid": "m1", "uids": "m1", "began": "1",
				"failures": "1", "first_at": "2026-11-21T06:00:00.000Z", "last_at": "2026-11-21T06:00:00.000Z"},
			":disabled": scores{"m1": six},
			":stats":    hash{"failure": "1", "exhausted": "1", "final_failure": "1", "total_retries": "1"},
		}),
	},
	{
		name: "failure of an attempt whose payload was replaced", answers: "oanswer",
		seed: and(runningKeys(), answered, keys{":model:m1": but(running, "again", "1", "outdated", "1")}),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Fail(policy.Failure{Reason: "404"}, b.now), b.now)
		},
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "saved while running: again", "refresh_for", "change",
				"attempt_no", ""),
			":urgent": scores{"m1": six}, ":journal": events{{"event": "outdated", "ended_attempt_no": "1", "reason": "404"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","is":"outdated","limit":600000,"reason":"404","next":0,"why":"saved while running: again"}`},
			":stats":      hash{"outdated": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "timeout", act: expiryOf,
		seed: and(runningKeys(), keys{":running": scores{"m1": six}, ":model:m1": but(running, "deadline_at", "2026-11-21T06:00:00.000Z")}),
		want: keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "retry 1 of 3 at once", "refresh_for", "retry",
				"failing_since", "2026-11-21T06:00:00.000Z", "error", "f77d1bb58da8"),
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m1": six},
			":journal":    events{{"event": "timeout", "ended_attempt_no": "1", "reason": "timeout", "error_type": "timeout"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","is":"timeout","limit":60000,"reason":"timeout","type":"timeout","delay":0,"next":0,"of":3}`},
			":failing":    scores{"m1": six}, ":errors": scores{"f77d1bb58da8": 1},
			":error:f77d1bb58da8": but(http503Hash, "reason", "timeout", "signature", "timeout", "error_type", "timeout"),
			":stats":              hash{"timeout": "1"}, ":wake": list{"1"},
		},
	},
	{
		name: "withdrawn", act: withdrawalOf,
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry, "y"}}),
		want: and(idleKeys, keys{
			":model:m1": ended(running, "attempt_no", "", "refresh_at", "2026-11-21T06:00:00.000Z",
				"refresh_why", "withdrawn: no worker took it"),
			":due": scores{"m1": six}, "-input": list{"x", "y"},
			":journal": events{{"event": "withdrawn", "ended_attempt_no": "1"}}, ":stats": hash{"withdrawn": "1"},
			":wake": list{"1"},
		}),
	},
	{
		name: "postponed", answers: "oanswer",
		seed: and(runningKeys(), answered),
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Postpone(5*time.Minute, b.now), b.now) },
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "attempt_no", "", "deferrals", "1", "refresh_at", "2026-11-21T06:05:00.000Z",
				"refresh_why", "postponed by the worker: again after 5m", "refresh_for", "deferred", "not_before", "2026-11-21T06:05:00.000Z"),
			":due": scores{"m1": six + 5*minute}, ":journal": events{{"event": "postponed", "ended_attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","is":"postponed","limit":600000,"next":300000,"why":"postponed by the worker: again after 5m"}`},
			":stats":      hash{"postponed": "1"},
		}),
	},
	{
		name: "interrupted", answers: "oanswer",
		seed: and(runningKeys(), answered),
		act:  func(b *bench, r *Record) *Transition { return r.Decide(interrupted(r, b.now), b.now) },
		want: and(rest, idleKeys, keys{
			":model:m1": ended(running, "attempt_no", "", "deferrals", "1", "refresh_at", "2026-11-21T06:00:00.000Z",
				"refresh_why", "interrupted: again at once", "refresh_for", "deferred"),
			":due": scores{"m1": six}, ":journal": events{{"event": "interrupted", "ended_attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","is":"interrupted","limit":600000,"next":0,"why":"interrupted: again at once"}`},
			":stats":      hash{"interrupted": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "started", answers: "oanswer",
		seed: and(runningKeys(), answered),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Begin(b.now, "w7")
			return r.Decide(decision, b.now)
		},
		want: and(rest, keys{
			":model:m1": but(running, "rev", "9", "processing_at", "2026-11-21T06:00:00.000Z", "worker", "w7",
				"deadline_at", "2026-11-21T06:10:00.000Z", "refresh_at", "2026-11-21T06:10:00.000Z", "entry_deadline_at", "2026-11-21T06:09:00.000Z"),
			":payload:m1": `{"input_url":"u"}`, ":running": scores{"m1": tenPast, "m2": six},
			":journal": events{{"event": "started"}}, ":stats": hash{"started": "1"},
		}),
	},
	{
		name: "status", answers: "oanswer",
		seed: and(runningKeys(), answered),
		act: func(b *bench, r *Record) *Transition {
			half := 50
			decision, _ := r.Handle(model.Message{Type: model.MessageStatus, AttemptUID: "a1", Status: "half", Progress: &half}, b.now)
			return r.Decide(decision, b.now)
		},
		want: and(rest, runningKeys(), keys{
			":model:m1": but(running, "user_friendly_status", "half", "progress", "50"), ":stats": hash{"status": "1"},
		}),
	},
}

func parkedKeys() keys {
	return keys{
		":model:m1":   but(dueModel, "parked_by", "hold:h1", "parked_since", "2026-11-21T05:00:00.000Z"),
		":payload:m1": `{"input_url":"u"}`, ":parked": scores{"m1": six, "m2": six}, ":parked:hold:h1": scores{"m1": six, "m2": six},
		":gates": scores{"hold:h1": six},
	}
}

// startCases are what a dispatcher does when a model is due.
var startCases = []eventCase{
	{
		name: "start", act: firstStartOf,
		seed: waitingKeys(),
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "on timeout: retry 1 of 3 at once",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1", "entry_times", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a1","input_url":"u","attempt_no":1,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"` + atSix("change") + `}`},
			":journal": events{{"event": "start"}}, ":stats": hash{"start": "1"},
		},
	},
	{
		name: "start of a retry",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "attempt_no", "1", "user_friendly_status", "half", "progress", "50",
			"trying_since", "2026-11-21T05:50:00.000Z"), ":stats": hash{"start": "41"}}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a2"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:11:00.000Z", "refresh_why", "on timeout: retry 2 of 3 after 1m",
				"attempt_uid", "a2", "attempt_no", "2", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T05:50:00.000Z", "ticket", "42", "entry_times", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a2","input_url":"u","attempt_no":2,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"` + atSix("change") + `}`},
			":journal": events{{"event": "start"}}, ":stats": hash{"start": "42", "retry": "1"},
		},
	},
	{
		name: "start of what is urgent", act: firstStartOf,
		seed: keys{":model:m1": but(dueModel, "refresh_for", "hand"), ":payload:m1": `{"input_url":"u"}`, ":urgent": scores{"m1": six, "m2": six}},
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "on timeout: retry 1 of 3 at once",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "refresh_for", "hand", "ticket", "1", "entry_times", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"u"}`, ":urgent": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{fencedAtSix("run")}, ":journal": events{{"event": "start"}},
			":stats": hash{"start": "1"},
		},
	},
	{
		name: "parked by a hold",
		seed: waitingKeys(),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Park("hold:h1", b.now.Add(time.Hour), b.now), b.now)
		},
		want: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "rev", "8", "parked_by", "hold:h1", "parked_since", "2026-11-21T06:00:00.000Z"),
			":due":      scores{"m2": six}, ":parked": scores{"m1": six}, ":parked:hold:h1": scores{"m1": six},
			":gates": scores{"hold:h1": six + 60*minute}, ":journal": events{{"event": "parked"}},
			":stats": hash{"parked": "1"},
		}),
	},
	{
		name: "start of what was parked",
		seed: parkedKeys(),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(new(model.Blockers).StartOrPark(&r.Model, new(model.Limiters), "a1", b.now), b.now)
		},
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "on timeout: retry 1 of 3 at once",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1", "entry_times", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"u"}`, ":parked": scores{"m2": six}, ":parked:hold:h1": scores{"m2": six},
			":gates": scores{"hold:h1": six}, ":running": scores{"m1": tenPast},
			"-input": list{fencedAtSix("change")}, ":journal": events{{"event": "start"}},
			":stats": hash{"start": "1"},
		},
	},
	{
		name: "released later",
		seed: parkedKeys(),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Release(b.now.Add(time.Minute), b.now), b.now)
		},
		want: keys{
			":model:m1":   but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "released by hold:h1"),
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m1": six + minute}, ":parked": scores{"m2": six},
			":parked:hold:h1": scores{"m2": six}, ":gates": scores{"hold:h1": six}, ":journal": events{{"event": "released"}},
			":stats": hash{"released": "1"},
		},
	},
}

// Two fingerprints: "http: 503", and another one.
const (
	http503    = "a1aa3df6dea9"
	otherError = "0123456789ab"
)

// http503Hash is the group of the first once m1 has failed by it at six.
var http503Hash = hash{
	"signature": "http: 503", "reason": "503", "error_type": "http", "uid": "m1", "uids": "m1",
	"first_at": "2026-11-21T06:00:00.000Z", "last_at": "2026-11-21T06:00:00.000Z", "failures": "1", "began": "1",
}

var newError = map[string]any{
	"event": "new_error", "at": "2026-11-21T06:00:00.000Z", "error": http503, "signature": "http: 503", "models": "51", "reason": "503",
}

// failingModel fails by a fingerprint since five, and its second attempt runs.
func failingModel(fingerprint string) hash {
	return but(running, "attempt_no", "2", "failing_since", "2026-11-21T05:00:00.000Z", "error", fingerprint)
}

// failingKeys are a failing model and its failure groups.
func failingKeys(fingerprint string, known keys) keys {
	return and(runningKeys(), answered, keys{":model:m1": failingModel(fingerprint), ":failing": scores{"m1": six - 60*minute}}, known)
}

// failedKeys are the same when it has failed again.
func failedKeys(fingerprint string, known keys) keys {
	return and(rest, keys{
		":model:m1": ended(failingModel(fingerprint), "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "retry 2 of 3 after 1m",
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

// manyErrors are so many fingerprints of failing models; two models have the other one.
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
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "fence", "", "total_retries", "1", "successful_retries", "1", "retried_cycles", "1"),
			":past_errors": scores{http503: six}, ":error:" + http503: but(http503Hash, "ended", "1"),
			":journal":    events{{"event": "success", "ended_attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
		}),
	},
}

func interrupted(r *Record, now time.Time) model.Decision {
	decision, _ := r.Handle(model.Message{Type: model.MessageInterrupted, AttemptUID: r.AttemptUID}, now)
	return decision
}
