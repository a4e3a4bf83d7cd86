package scripts

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/policy"

	"github.com/refreshd/refreshd/model"
)

// The instants of the tables, in Unix ms. The bench's clock stands at six.
const (
	six     = 1795240800000
	minute  = 60_000
	tenPast = six + 10*minute
)

// dueModel waits since six; running took an attempt a minute before.
var (
	dueModel = hash{"rev": "7", "refresh_at": "2026-11-21T06:00:00.000Z", "refresh_why": "saved: refresh now"}
	running  = hash{
		"rev": "8", "refresh_at": "2026-11-21T06:09:00.000Z", "refresh_why": "if lost: retry 1/3 at once, none planned",
		"attempt_uid": "a1", "attempt_no": "1",
		"started_at": "2026-11-21T05:59:00.000Z", "deadline_at": "2026-11-21T06:09:00.000Z", "trying_since": "2026-11-21T05:59:00.000Z",
	}
)

// queuedEntry is that of the attempt of running.
const queuedEntry = `{"big_table_uid":"m1","refresh_attempt_uid":"a1","input_url":"u","attempt_no":1,"deadline_at":"2026-11-21T06:09:00.000Z"}`

// but returns a copy of fields with others in place; an empty value removes a field.
func but(fields hash, changes ...string) hash {
	fields = maps.Clone(fields)
	for pair := range slices.Chunk(changes, 2) {
		if fields[pair[0]] = pair[1]; pair[1] == "" {
			delete(fields, pair[0])
		}
	}
	return fields
}

// ended are the changes by which an attempt ends at six.
func ended(fields hash, changes ...string) hash {
	gone := []string{"attempt_uid", "", "started_at", "", "deadline_at", "", "last_attempt_uid", "a1", "rev", "9"}
	return but(fields, append(gone, changes...)...)
}

// and returns both sets of keys as one.
func and(sets ...keys) keys {
	all := keys{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}

// answered is a message that somebody waits for, between two others; rest is what stays.
var (
	answered = keys{":claimed:p1": list{"obefore", "oanswer", "oafter"}}
	rest     = keys{":claimed:p1": list{"obefore", "oafter"}}
)

func waitingKeys() keys {
	return keys{":model:m1": dueModel, ":payload:m1": `{"input_url":"u"}`, ":due": scores{"m1": six, "m2": six}}
}

func runningKeys() keys {
	return keys{":model:m1": running, ":payload:m1": `{"input_url":"u"}`, ":running": scores{"m1": six + 9*minute, "m2": six}}
}

// watched is a policy that promises freshness.
var watched = keys{":policies": hash{"p": `{"timeout":"10m","retries":[0,"1m","5m"],"alignment":"align_planned","on_exhausted":"next_planned","fresh_within":"1h","warn_within":"30m"}`}}

func parkedKeys() keys {
	return keys{
		":model:m1":   but(dueModel, "parked_by", "hold:h1", "parked_since", "2026-11-21T05:00:00.000Z"),
		":payload:m1": `{"input_url":"u"}`, ":parked": scores{"m1": six, "m2": six}, ":parked:hold:h1": scores{"m1": six, "m2": six},
		":gates": scores{"hold:h1": six},
	}
}

// eventCases have one transition of each kind, with everything that Redis holds before and after.
var eventCases = []struct {
	name    string
	seed    keys
	act     func(b *bench, r *Record) *Transition
	want    keys
	answers string // a claimed message; empty: none
}{
	{
		name: "start",
		seed: waitingKeys(),
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a1"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m2": six},
			":running":    scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a1","input_url":"u","attempt_no":1,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"}`},
			":journal": events{{"event": "start"}},
			":stats":   hash{"start": "1"},
		},
	},
	{
		name: "start of a retry",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "attempt_no", "1", "user_friendly_status", "half", "progress", "50",
			"trying_since", "2026-11-21T05:50:00.000Z")}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a2"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:11:00.000Z", "refresh_why", "if lost: retry 2/3 +1m, none planned",
				"attempt_uid", "a2", "attempt_no", "2", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T05:50:00.000Z", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m2": six},
			":running":    scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a2","input_url":"u","attempt_no":2,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"}`},
			":journal": events{{"event": "start"}},
			":stats":   hash{"start": "1", "retry": "1"},
		},
	},
	{
		name:    "success",
		seed:    and(runningKeys(), answered),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			no := false
			return r.Decide(r.Succeed(b.now, &no), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"u"}`,
			":running":    scores{"m2": six},
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "changed": "false"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"success","limit":600000,"changed":false,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "success_unchanged": "1"},
		}),
	},
	{
		name: "success of a retry after a final failure",
		seed: and(runningKeys(), answered, keys{":model:m1": but(running, "final_failure_at", "2026-11-20T06:00:00.000Z",
			"failing_since", "2026-11-20T06:00:00.000Z", "deferrals", "2", "again", "1", "attempt_no", "2",
			"total_retries", "7", "successful_retries", "2", "retried_cycles", "3")}),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Succeed(b.now, nil), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "saved while running: again", "refresh_for", "hand",
				"attempt_no", "", "trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z",
				"total_retries", "8", "successful_retries", "3", "retried_cycles", "4"),
			":payload:m1": `{"input_url":"u"}`,
			":urgent":     scores{"m1": six},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "success", "ended_attempt_no": "2"}},
			":outbox":     events{{"event": "recovered", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"success","limit":600000,"next":0,"why":"saved while running: again"}`},
			":stats":      hash{"success": "1", "recovered": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
			":wake":       list{"1"},
		}),
	},
	{
		name:    "failure with a retry",
		seed:    and(runningKeys(), answered, keys{":model:m1": but(running, "attempt_no", "2")}),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Fail(policy.Failure{Reason: "503", ErrorType: "http"}, b.now), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "attempt_no", "2", "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "retry 2/3 +1m, none planned", "refresh_for", "retry",
				"failing_since", "2026-11-21T06:00:00.000Z", "error", http503, "total_retries", "1", "retried_cycles", "1"),
			":payload:m1": `{"input_url":"u"}`,
			":errors":     scores{http503: 1}, ":error:" + http503: http503Hash,
			":due":        scores{"m1": six + minute},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "failure", "ended_attempt_no": "2", "reason": "503", "error_type": "http"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"failure","limit":600000,"reason":"503","type":"http","delay":60000,"next":60000,"of":3}`},
			":failing":    scores{"m1": six},
			":stats":      hash{"failure": "1", "total_retries": "1", "retried_cycles": "1"},
		}),
	},
	{
		name:    "failure by the same signature as before",
		seed:    failingKeys(http503, keys{":errors": scores{http503: 2}, ":error:" + http503: http503Hash}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys(http503, keys{":errors": scores{http503: 2},
			":error:" + http503: but(http503Hash, "last_at", "2026-11-21T06:00:00.000Z", "failures", "2")}),
	},
	{
		name: "failure by another signature",
		seed: failingKeys(otherError, keys{":errors": scores{http503: 1, otherError: 2}, ":error:" + otherError: hash{"began": "2"},
			":error:" + http503: but(http503Hash, "uids", "m4 m1 m3", "first_at", "2026-11-21T05:00:00.000Z", "began", "4", "ended", "3", "failures", "7")}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys(http503, keys{":errors": scores{http503: 2, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "uids", "m1 m4 m3", "first_at", "2026-11-21T05:00:00.000Z", "began", "5", "ended", "3", "failures", "8")}),
	},
	{
		name: "failure by a signature that is past, of the last model of another one",
		seed: failingKeys(otherError, keys{":errors": scores{otherError: 1}, ":error:" + otherError: hash{"began": "1"},
			":past_errors": scores{http503: six - 1, "old": six - 24*60*minute}, ":error:" + http503: but(http503Hash, "ended", "1")}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys(http503, keys{":errors": scores{http503: 1}, ":error:" + otherError: hash{"began": "1", "ended": "1"}, ":past_errors": scores{otherError: six},
			":error:" + http503: but(http503Hash, "ended", "1", "began", "2", "failures", "2")}),
	},
	{
		name:    "failure by a signature beyond those that are kept apart",
		seed:    failingKeys(otherError, keys{":errors": manyErrors(1000), ":error:" + otherError: hash{"began": "2"}}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys("other", keys{":errors": counting(manyErrors(1000), scores{otherError: 1, "other": 1}), ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:other": but(http503Hash, "signature", "other")}),
	},
	{
		name:    "failure again by a signature beyond those that are kept apart",
		seed:    failingKeys("other", keys{":errors": counting(manyErrors(1000), scores{"other": 2}), ":error:other": but(http503Hash, "signature", "other")}),
		answers: "oanswer",
		act:     fail503,
		want:    failedKeys("other", keys{":errors": counting(manyErrors(1000), scores{"other": 2}), ":error:other": but(http503Hash, "signature", "other", "failures", "2")}),
	},
	{
		name:    "failure that stops more models than may be untold",
		seed:    failingKeys(otherError, keys{":errors": scores{http503: 50, otherError: 2}, ":error:" + otherError: hash{"began": "2"}, ":error:" + http503: but(http503Hash, "told_ms", "1795154400000")}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys(http503, keys{":errors": scores{http503: 51, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "began", "2", "failures", "2", "told_ms", "1795240800000"), ":outbox": events{newError}}),
	},
	{
		name:    "failure that stops more models, of which somebody was told today",
		seed:    failingKeys(otherError, keys{":errors": scores{http503: 50, otherError: 2}, ":error:" + otherError: hash{"began": "2"}, ":error:" + http503: but(http503Hash, "told_ms", "1795154400001")}),
		answers: "oanswer",
		act:     fail503,
		want: failedKeys(http503, keys{":errors": scores{http503: 51, otherError: 1}, ":error:" + otherError: hash{"began": "2", "ended": "1"},
			":error:" + http503: but(http503Hash, "began", "2", "failures", "2", "told_ms", "1795154400001")}),
	},
	{
		name:    "success of the last model of a signature",
		seed:    failingKeys(http503, keys{":errors": scores{http503: 1}, ":error:" + http503: http503Hash}),
		answers: "oanswer",
		act:     func(b *bench, r *Record) *Transition { return r.Decide(r.Succeed(b.now, nil), b.now) },
		want: and(rest, keys{
			":model:m1": ended(running, "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "",
				"trying_since", "", "last_success_at", "2026-11-21T06:00:00.000Z", "total_retries", "1", "successful_retries", "1", "retried_cycles", "1"),
			":payload:m1":  `{"input_url":"u"}`,
			":running":     scores{"m2": six},
			":past_errors": scores{http503: six}, ":error:" + http503: but(http503Hash, "ended", "1"),
			":journal":    events{{"event": "success", "ended_attempt_no": "2"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":2,"is":"success","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "total_retries": "1", "successful_retries": "1", "retried_cycles": "1"},
		}),
	},
	{
		name:    "final failure",
		seed:    and(runningKeys(), answered, keys{":model:m1": but(running, "attempt_no", "4", "failing_since", "2026-11-21T05:00:00.000Z")}),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Fail(policy.Failure{Reason: "404", UserFriendlyReason: "The feed is gone"}, b.now), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "attempt_no", "4", "refresh_at", "", "refresh_why", "final: exhausted, none planned",
				"failing_since", "2026-11-21T05:00:00.000Z", "error", "6b3c238ebcf1", "final_failure_at", "2026-11-21T06:00:00.000Z",
				"refresh_disabled_until_update", "1", "refresh_disabled_at", "2026-11-21T06:00:00.000Z", "refresh_disabled_by", "policy", "refresh_disabled_user_friendly_reason", "The feed is gone", "total_retries", "1"),
			":payload:m1": `{"input_url":"u"}`,
			":running":    scores{"m2": six},
			":journal":    events{{"event": "failure", "ended_attempt_no": "4", "reason": "404", "final": "1"}},
			":outbox": events{{
				"event": "disabled", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "4", "reason": "The feed is gone",
				"refresh_why": "final: exhausted, none planned",
			}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":4,"is":"failure","limit":600000,"final":true,"exhausted":true,"reason":"404","why":"final: exhausted, none planned"}`},
			":failing":    scores{"m1": six - 60*minute},
			":errors":     scores{"6b3c238ebcf1": 1},
			":error:6b3c238ebcf1": hash{"signature": "404", "reason": "404", "error_type": "", "uid": "m1", "uids": "m1", "began": "1",
				"failures": "1", "first_at": "2026-11-21T06:00:00.000Z", "last_at": "2026-11-21T06:00:00.000Z"},
			":disabled": scores{"m1": six},
			":stats":    hash{"failure": "1", "exhausted": "1", "final_failure": "1", "total_retries": "1"},
		}),
	},
	{
		name: "timeout",
		seed: and(runningKeys(), keys{":running": scores{"m1": six}, ":model:m1": but(running, "deadline_at", "2026-11-21T06:00:00.000Z")}),
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Expire(b.now), b.now) },
		want: keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "retry 1/3 at once, none planned", "refresh_for", "retry",
				"failing_since", "2026-11-21T06:00:00.000Z", "error", "f77d1bb58da8"),
			":payload:m1":         `{"input_url":"u"}`,
			":due":                scores{"m1": six},
			":journal":            events{{"event": "timeout", "ended_attempt_no": "1", "reason": "timeout", "error_type": "timeout"}},
			":history:m1":         list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"timeout","limit":60000,"reason":"timeout","type":"timeout","delay":0,"next":0,"of":3}`},
			":failing":            scores{"m1": six},
			":errors":             scores{"f77d1bb58da8": 1},
			":error:f77d1bb58da8": but(http503Hash, "reason", "timeout", "signature", "timeout", "error_type", "timeout"),
			":stats":              hash{"timeout": "1"},
			":wake":               list{"1"},
		},
	},
	{
		name: "withdrawn",
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry, "y"}}),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Withdraw(b.now), b.now)
		},
		want: keys{
			":model:m1": ended(running, "attempt_no", "", "refresh_at", "2026-11-21T06:00:00.000Z",
				"refresh_why", "withdrawn: no worker took it"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six},
			":running":    scores{"m2": six},
			"-input":      list{"x", "y"},
			":journal":    events{{"event": "withdrawn", "ended_attempt_no": "1"}},
			":stats":      hash{"withdrawn": "1"},
			":wake":       list{"1"},
		},
	},
	{
		name:    "postponed",
		seed:    and(runningKeys(), answered),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Postpone(5*time.Minute, b.now), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "attempt_no", "", "deferrals", "1", "refresh_at", "2026-11-21T06:05:00.000Z",
				"refresh_why", "postponed by the worker +5m", "refresh_for", "deferred", "not_before", "2026-11-21T06:05:00.000Z"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six + 5*minute},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "postponed", "ended_attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"postponed","limit":600000,"next":300000,"why":"postponed by the worker +5m"}`},
			":stats":      hash{"postponed": "1"},
		}),
	},
	{
		name:    "interrupted",
		seed:    and(runningKeys(), answered),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Interrupt(b.now), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "attempt_no", "", "deferrals", "1", "refresh_at", "2026-11-21T06:00:00.000Z",
				"refresh_why", "interrupted: again at once", "refresh_for", "deferred"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "interrupted", "ended_attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"interrupted","limit":600000,"next":0,"why":"interrupted: again at once"}`},
			":stats":      hash{"interrupted": "1"},
			":wake":       list{"1"},
		}),
	},
	{
		name:    "started",
		seed:    and(runningKeys(), answered),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Begin(b.now, "w7")
			return r.Decide(decision, b.now)
		},
		want: and(rest, keys{
			":model:m1": but(running, "rev", "9", "processing_at", "2026-11-21T06:00:00.000Z", "worker", "w7",
				"deadline_at", "2026-11-21T06:10:00.000Z", "refresh_at", "2026-11-21T06:10:00.000Z", "entry_deadline_at", "2026-11-21T06:09:00.000Z"),
			":payload:m1": `{"input_url":"u"}`,
			":running":    scores{"m1": tenPast, "m2": six},
			":journal":    events{{"event": "started"}},
			":stats":      hash{"started": "1"},
		}),
	},
	{
		name:    "status",
		seed:    and(runningKeys(), answered),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			half := 50
			decision, _ := r.Handle(model.Message{Type: model.MessageStatus, AttemptUID: "a1", Status: "half", Progress: &half}, b.now)
			return r.Decide(decision, b.now)
		},
		want: and(rest, runningKeys(), keys{
			":model:m1": but(running, "user_friendly_status", "half", "progress", "50"),
			":stats":    hash{"status": "1"},
		}),
	},
	{
		name:    "create",
		seed:    keys{":claimed:control": list{"canswer"}, ":holder": "p1"},
		answers: "canswer",
		act: func(b *bench, _ *Record) *Transition {
			return b.put("m1", `{"input_url":"u"}`)
		},
		want: keys{
			":holder":     "p1",
			":model:m1":   but(dueModel, "rev", "1795240800000"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six},
			":created":    events{{"event": "create"}},
			":stats":      hash{"create": "1"},
			":wake":       list{"1"},
		},
	},
	{
		name:    "update of a queued model",
		seed:    and(runningKeys(), keys{"-input": list{"x", queuedEntry, "y"}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
		answers: "canswer",
		act: func(b *bench, _ *Record) *Transition {
			return b.put("m1", `{"input_url":"v"}`)
		},
		want: and(runningKeys(), keys{
			":holder":     "p1",
			":model:m1":   but(running, "rev", "9", "trying_since", "2026-11-21T06:00:00.000Z"), // the give-up window begins anew
			":payload:m1": `{"input_url":"v"}`,
			"-input":      list{"x", strings.Replace(queuedEntry, `"u"`, `"v"`, 1), "y"},
			":journal":    events{{"event": "update"}},
			":stats":      hash{"update": "1"},
		}),
	},
	{
		name:    "update of a model whose attempt a worker has",
		seed:    and(runningKeys(), keys{"-input": list{"x"}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
		answers: "canswer",
		act: func(b *bench, _ *Record) *Transition {
			return b.putTaken("m1", `{"input_url":"v"}`)
		},
		want: and(runningKeys(), keys{
			":holder": "p1",
			":model:m1": but(running, "rev", "9", "again", "1", "outdated", "1", "refresh_why", "saved while running: again",
				"trying_since", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"v"}`,
			"-input":      list{"x"},
			":journal":    events{{"event": "update"}},
			":stats":      hash{"update": "1"},
		}),
	},
	{
		name:    "failure of an attempt whose payload was replaced",
		seed:    and(runningKeys(), answered, keys{":model:m1": but(running, "again", "1", "outdated", "1")}),
		answers: "oanswer",
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Fail(policy.Failure{Reason: "404"}, b.now), b.now)
		},
		want: and(rest, keys{
			":model:m1": ended(running, "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "saved while running: again", "refresh_for", "hand",
				"attempt_no", ""),
			":payload:m1": `{"input_url":"u"}`,
			":urgent":     scores{"m1": six},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "outdated", "ended_attempt_no": "1", "reason": "404"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"outdated","limit":600000,"reason":"404","next":0,"why":"saved while running: again"}`},
			":stats":      hash{"outdated": "1"},
			":wake":       list{"1"},
		}),
	},
	{
		name:    "run by force",
		seed:    and(runningKeys(), keys{"-input": list{queuedEntry}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
		answers: "canswer",
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Run(true, b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder":     "p1",
			":model:m1":   ended(running, "attempt_no", "", "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "run by hand", "refresh_for", "hand", "last_attempt_uid", ""),
			":payload:m1": `{"input_url":"u"}`,
			":urgent":     scores{"m1": six},
			":running":    scores{"m2": six},
			":journal":    events{{"event": "run", "ended_attempt_no": "1", "ended_attempt_uid": "a1", "reason": "superseded: run by hand"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"run","limit":600000,"reason":"superseded: run by hand","next":0,"why":"run by hand"}`},
			":stats":      hash{"run": "1"},
			":wake":       list{"1"},
		},
	},
	{
		name:    "disable",
		seed:    and(waitingKeys(), keys{":claimed:control": list{"canswer"}, ":holder": "p1"}),
		answers: "canswer",
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Disable("not paid", "", b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder": "p1",
			":model:m1": hash{"rev": "8", "refresh_why": "disabled by hand",
				"refresh_disabled_until_update": "1", "refresh_disabled_at": "2026-11-21T06:00:00.000Z", "refresh_disabled_user_friendly_reason": "not paid", "refresh_disabled_by": "hand"},
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m2": six},
			":journal":    events{{"event": "disable"}},
			":disabled":   scores{"m1": six},
			":stats":      hash{"disable": "1"},
		},
	},
	{
		name: "enable",
		seed: keys{":model:m1": hash{"rev": "8", "attempt_no": "4", "refresh_disabled_until_update": "1",
			"refresh_disabled_user_friendly_reason": "not paid"}, ":claimed:control": list{"canswer"}, ":holder": "p1", ":disabled": scores{"m1": six}},
		answers: "canswer",
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Enable(b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder":   "p1",
			":model:m1": hash{"rev": "9", "refresh_at": "2026-11-21T06:00:00.000Z", "refresh_why": "enabled: nothing planned, now"},
			":due":      scores{"m1": six},
			":journal":  events{{"event": "enable"}},
			":stats":    hash{"enable": "1"},
			":wake":     list{"1"},
		},
	},
	{
		name: "remove",
		seed: and(runningKeys(), keys{":due": scores{"m2": six}, ":history:m1": list{"old"}, "-input": list{queuedEntry},
			":claimed:control": list{"canswer"}, ":holder": "p1", ":failing": scores{"m1": six, "m2": six}, ":label:tenant=t1": set{"m1": true, "m2": true},
			":errors": scores{http503: 2}, ":error:" + http503: http503Hash,
			":model:m1": but(running, "label:tenant", "t1", "failing_since", "2026-11-21T06:00:00.000Z", "error", http503)}),
		answers: "canswer",
		act: func(_ *bench, r *Record) *Transition {
			return r.Remove()
		},
		want: keys{
			":holder":          "p1",
			":due":             scores{"m2": six},
			":running":         scores{"m2": six},
			":journal":         events{{"event": "remove"}},
			":failing":         scores{"m2": six},
			":label:tenant=t1": set{"m2": true},
			":errors":          scores{http503: 1}, ":error:" + http503: but(http503Hash, "ended", "1"),
			":stats": hash{"remove": "1"},
		},
	},
	{
		name: "start of what is urgent",
		seed: keys{":model:m1": but(dueModel, "refresh_for", "hand"), ":payload:m1": `{"input_url":"u"}`, ":urgent": scores{"m1": six, "m2": six}},
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Start(b.now, "a1"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "refresh_for", "hand", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`,
			":urgent":     scores{"m2": six},
			":running":    scores{"m1": tenPast},
			"-input":      list{strings.Replace(queuedEntry, "06:09", "06:10", 1)},
			":journal":    events{{"event": "start"}},
			":stats":      hash{"start": "1"},
		},
	},
	{
		name: "save of other labels",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:kind", "feed", "label:tenant", "t1"),
			":label:kind=feed": set{"m1": true}, ":label:tenant=t1": set{"m1": true, "m2": true}}),
		act: func(b *bench, r *Record) *Transition {
			decision, _, err := r.Put(model.Definition{UID: "m1", Payload: r.Payload, Labels: map[string]string{"kind": "feed", "tenant": "t2"}}, policy.Default(), true, b.now)
			if err != nil {
				b.t.Fatal(err)
			}
			return r.Decide(decision, b.now)
		},
		want: and(waitingKeys(), keys{
			":model:m1":        but(dueModel, "rev", "8", "label:kind", "feed", "label:tenant", "t2"),
			":label:kind=feed": set{"m1": true}, ":label:tenant=t1": set{"m2": true}, ":label:tenant=t2": set{"m1": true},
			":journal": events{{"event": "update"}},
			":stats":   hash{"update": "1"},
			":wake":    list{"1"},
		}),
	},
	{
		name: "parked by a hold",
		seed: waitingKeys(),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Park("hold:h1", b.now.Add(time.Hour), b.now), b.now)
		},
		want: and(waitingKeys(), keys{
			":model:m1":       but(dueModel, "rev", "8", "parked_by", "hold:h1", "parked_since", "2026-11-21T06:00:00.000Z"),
			":due":            scores{"m2": six},
			":parked":         scores{"m1": six},
			":parked:hold:h1": scores{"m1": six},
			":gates":          scores{"hold:h1": six + 60*minute},
			":journal":        events{{"event": "parked"}},
			":stats":          hash{"parked": "1"},
		}),
	},
	{
		name: "start of what was parked",
		seed: parkedKeys(),
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Admit(b.now, "a1"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1"),
			":payload:m1":     `{"input_url":"u"}`,
			":parked":         scores{"m2": six},
			":parked:hold:h1": scores{"m2": six},
			":gates":          scores{"hold:h1": six},
			":running":        scores{"m1": tenPast},
			"-input":          list{strings.Replace(queuedEntry, "06:09", "06:10", 1)},
			":journal":        events{{"event": "start"}},
			":stats":          hash{"start": "1"},
		},
	},
	{
		name: "released later",
		seed: parkedKeys(),
		act: func(b *bench, r *Record) *Transition {
			return r.Decide(r.Release(b.now.Add(time.Minute), b.now), b.now)
		},
		want: keys{
			":model:m1":       but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:01:00.000Z", "refresh_why", "released by hold:h1"),
			":payload:m1":     `{"input_url":"u"}`,
			":due":            scores{"m1": six + minute},
			":parked":         scores{"m2": six},
			":parked:hold:h1": scores{"m2": six},
			":gates":          scores{"hold:h1": six},
			":journal":        events{{"event": "released"}},
			":stats":          hash{"released": "1"},
		},
	},
	{
		name: "import of a new model",
		seed: keys{":due": scores{"m2": six}, ":history:m1": list{"left over"}},
		act:  imported,
		want: keys{
			":model:m1":   but(importedModel, "rev", strconv.Itoa(six)),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six - minute, "m2": six},
			":failing":    scores{"m1": six - 2*minute},
			":history:m1": list{"newer", "older"},
			":created":    events{{"event": "import"}},
			":stats":      hash{"import": "1"},
			":wake":       list{"1"},
		},
	},
	{
		name: "import in place of a running model",
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry}, ":history:m1": list{"old", "oldest", "first"}}),
		act:  imported,
		want: keys{
			":model:m1":   but(importedModel, "rev", "9"),
			":payload:m1": `{"input_url":"u"}`,
			":due":        scores{"m1": six - minute},
			":running":    scores{"m2": six},
			"-input":      list{"x"},
			":failing":    scores{"m1": six - 2*minute},
			":history:m1": list{"newer", "older"},
			":journal":    events{{"event": "import"}},
			":stats":      hash{"import": "1"},
			":wake":       list{"1"},
		},
	},
	{
		name: "success of a stale model",
		seed: and(runningKeys(), watched, answered, keys{
			":model:m1": but(running, "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T05:30:00.000Z", "last_success_at", "2026-11-21T04:30:00.000Z"),
			":stale":    scores{"m1": six - 30*minute, "m2": six},
		}),
		answers: "oanswer",
		act:     func(b *bench, r *Record) *Transition { return r.Decide(r.Succeed(b.now, nil), b.now) },
		want: and(rest, watched, keys{
			":model:m1": ended(running, "policy", "p", "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "", "trying_since", "",
				"last_success_at", "2026-11-21T06:00:00.000Z", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":payload:m1": `{"input_url":"u"}`,
			":running":    scores{"m2": six},
			":stale":      scores{"m2": six},
			":stale_at":   scores{"m1": six + 30*minute},
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
			":outbox":     events{{"event": "fresh", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"success","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "fresh_again": "1"},
		}),
	},
	{
		name: "success of a model that is stale and was disabled by a failure",
		seed: and(runningKeys(), watched, answered, keys{
			":model:m1": but(running, "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T05:30:00.000Z", "fresh_since", "2026-11-21T04:30:00.000Z",
				"final_failure_at", "2026-11-21T05:00:00.000Z"),
			":stale": scores{"m1": six - 30*minute},
		}),
		answers: "oanswer",
		act:     func(b *bench, r *Record) *Transition { return r.Decide(r.Succeed(b.now, nil), b.now) },
		want: and(rest, watched, keys{
			":model:m1": ended(running, "policy", "p", "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "", "trying_since", "",
				"last_success_at", "2026-11-21T06:00:00.000Z", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":payload:m1": `{"input_url":"u"}`,
			":running":    scores{"m2": six},
			":stale_at":   scores{"m1": six + 30*minute},
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
			":outbox": events{
				{"event": "recovered", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"},
				{"event": "fresh", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"},
			},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"success","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "fresh_again": "1", "recovered": "1"},
		}),
	},
	{
		name: "became late",
		seed: and(waitingKeys(), watched, keys{
			":model:m1": but(dueModel, "policy", "p", "freshness", "fresh", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:30:00.000Z"),
			":stale_at": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.Age(b.now), b.now) },
		want: and(waitingKeys(), watched, keys{
			":model:m1": but(dueModel, "rev", "8", "policy", "p", "freshness", "late", "stale_at", "2026-11-21T06:30:00.000Z", "last_success_at", "2026-11-21T05:30:00.000Z"),
			":stale_at": scores{"m1": six + 30*minute, "m2": six},
			":late":     scores{"m1": six + 30*minute},
			":journal":  events{{"event": "became_late", "freshness_was": "fresh"}},
			":stats":    hash{"became_late": "1"},
			":wake":     list{"1"},
		}),
	},
	{
		name: "became stale while an attempt runs",
		seed: and(runningKeys(), watched, keys{
			":model:m1": but(running, "policy", "p", "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:00:00.000Z"),
			":stale_at": scores{"m1": six}, ":late": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.Age(b.now), b.now) },
		want: and(runningKeys(), watched, keys{
			":model:m1": but(running, "rev", "9", "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:00:00.000Z"),
			":late":     scores{"m2": six},
			":stale":    scores{"m1": six},
			":journal":  events{{"event": "became_stale", "freshness_was": "late"}},
			":outbox":   events{{"event": "stale", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1", "last_success_at": "2026-11-21T05:00:00.000Z"}},
			":stats":    hash{"became_stale": "1"},
		}),
	},
	{
		name: "watch of a model whose policy promises nothing any more",
		seed: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z", "fresh_since", "2026-11-21T05:00:00.000Z"),
			":stale_at": scores{"m1": six, "m2": six}, ":late": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.Age(b.now), b.now) },
		want: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "rev", "8"),
			":stale_at": scores{"m2": six}, ":late": scores{"m2": six},
			":journal": events{{"event": "watch", "freshness_was": "late"}},
			":stats":   hash{"watch": "1"},
			":wake":    list{"1"},
		}),
	},
	{
		name: "mend of a model whose freshness stands in the wrong sets",
		seed: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z"),
			":stale_at": scores{"m1": 1}, ":stale": scores{"m1": 2},
		}),
		act: func(_ *bench, r *Record) *Transition { return r.Mend() },
		want: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z"),
			":stale_at": scores{"m1": six}, ":late": scores{"m1": six}, ":wake": list{"1"},
		}),
	},
	{
		name: "mend of a model that stands in the wrong set",
		seed: and(waitingKeys(), keys{":due": scores{"m1": 1, "m2": six}, ":running": scores{"m1": 2}}),
		act:  func(_ *bench, r *Record) *Transition { return r.Mend() },
		want: and(waitingKeys(), keys{":wake": list{"1"}}),
	},
}

// importedModel is what a model becomes that has failed elsewhere.
var importedModel = hash{
	"refresh_at": "2026-11-21T05:59:00.000Z", "refresh_why": "retry 3/6 +1m", "refresh_for": "retry", "attempt_no": "3",
	"failing_since": "2026-11-21T05:58:00.000Z",
}

func imported(b *bench, r *Record) *Transition {
	moved := model.Moved{Definition: model.Definition{UID: "m1", Payload: `{"input_url":"u"}`}, Past: []string{"newer", "older"}}
	moved.State = newRecord("m1", importedModel).State
	decision, _, err := r.Import(moved, policy.Default(), r.Exists, nil, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Decide(decision, b.now)
}

// withJournal completes the journal that is wanted: beside event and notes, each entry tells uid and instant, and each field of the model that
// was changed, without a value if it is gone.
func withJournal(seed, want keys) keys {
	stream := ":journal"
	if want[":created"] != nil {
		stream = ":created"
	}
	entries, journaled := want[stream].(events)
	if !journaled {
		return want
	}
	before, _ := seed[":model:m1"].(hash)
	entry := map[string]any{"uid": "m1", "at": "2026-11-21T06:00:00.000Z"}
	maps.Copy(entry, entries[0])
	if after, stays := want[":model:m1"].(hash); stays {
		maps.Copy(entry, told(before, after))
		failed(entry, before, after)
	}
	if outbox, is := want[":outbox"].(events); is && outbox[0]["event"] == "new_error" {
		return and(want, keys{stream: events{entry, outbox[0]}})
	}
	return and(want, keys{stream: events{entry}})
}

// changed are the fields in which one hash differs from the other, empty where it has none.
func changed(before, after hash) map[string]any {
	fields := map[string]any{}
	for name, value := range after {
		if value != before[name] {
			fields[name] = value
		}
	}
	for name := range before {
		if after[name] == "" {
			fields[name] = ""
		}
	}
	return fields
}

// told is what the journal says of a model that became another: what has changed, and why it waits.
func told(before, after hash) map[string]any {
	fields := changed(before, after)
	if why := after["refresh_why"]; why != "" {
		fields["refresh_why"] = why
	}
	return fields
}

// failed says of a journal by which signature a model has failed, also if it is the same as before. What is wanted again does not count.
func failed(entry map[string]any, before, after hash) {
	event := entry["event"]
	if signature := after["error"]; signature != "" && (event == "failure" || event == "timeout") && entry["ended_attempt_no"] != nil && before["again"] == "" {
		entry["error"] = signature
	}
}

// answering is the item of a transition, which may answer a claimed message.
func answering(message string, t *Transition) Item {
	return Item{Transition: t, Message: Claimed{message}}
}

func TestEachEventChangesExactlyWhatItShould(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range eventCases {
			t.Run(test.name, func(t *testing.T) {
				b.server.Flush(t)
				b := *b
				b.t = t
				b.seed(test.seed)
				expectCodes(t, b.commit(answering(test.answers, test.act(&b, b.load("m1")))), CodeApplied)
				b.expect(withJournal(test.seed, test.want))
			})
		}
	})
}

func TestATransitionSentTwiceAfterALostReplyCountsOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range eventCases {
			t.Run(test.name, func(t *testing.T) {
				b.server.Flush(t)
				b := *b
				b.t = t
				b.seed(test.seed)
				item := answering(test.answers, test.act(&b, b.load("m1")))
				expectCodes(t, b.commit(item), CodeApplied)
				b.unchanged(func() { b.commit(item) })
			})
		}
	})
}
