package store

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// importedModel is what a model becomes that has failed elsewhere.
var importedModel = hash{
	"refresh_at": "2026-11-21T05:59:00.000Z", "refresh_why": "retry 3 of 6 after 1m", "refresh_for": "retry", "attempt_no": "3",
	"failing_since": "2026-11-21T05:58:00.000Z",
}

func imported(b *bench, r *Record) *Transition {
	moved := model.Moved{Definition: model.Definition{UID: "m1", Payload: `{"input_url":"u"}`}, Past: []string{"newer", "older"}}
	moved.State = NewRecord("m1", importedModel).State
	decision, _, err := r.Import(moved, policy.Default(), r.Exists, nil, b.now)
	must(b.t, err)
	return r.Decide(decision, b.now)
}

var commandCases = []eventCase{
	{
		name: "create", answers: "n1 answer",
		seed: keys{":claimed:control": list{"n1 answer"}, ":holder": "p1"},
		act:  func(b *bench, _ *Record) *Transition { return b.put("m1", `{"input_url":"u"}`) },
		want: keys{
			":holder": "p1", ":model:m1": but(dueModel, "rev", "1795240800000"), ":payload:m1": `{"input_url":"u"}`,
			":due": scores{"m1": six}, ":journal": events{{"event": "create"}}, ":stats": hash{"create": "1"},
			":wake": list{"1"},
		},
	},
	{
		name: "update of a queued model", answers: "n1 answer",
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry, "y"}, ":claimed:control": list{"n1 answer"}, ":holder": "p1"}),
		act:  func(b *bench, _ *Record) *Transition { return b.put("m1", `{"input_url":"v"}`) },
		want: and(runningKeys(), keys{
			":holder":     "p1",
			":model:m1":   but(running, "rev", "9", "trying_since", "2026-11-21T06:00:00.000Z", "fence", "1795240740001"), // the give-up window begins anew
			":payload:m1": `{"input_url":"v"}`, "-input": list{"x", strings.NewReplacer(`"u"`, `"v"`, "740000", "740001").Replace(queuedEntry), "y"},
			":journal": events{{"event": "update"}}, ":stats": hash{"update": "1"},
		}),
	},
	{
		name: "update of a model whose attempt a worker has", answers: "n1 answer",
		seed: and(runningKeys(), keys{"-input": list{"x"}, ":claimed:control": list{"n1 answer"}, ":holder": "p1"}),
		act:  func(b *bench, _ *Record) *Transition { return b.putTaken("m1", `{"input_url":"v"}`) },
		want: and(runningKeys(), keys{
			":holder": "p1",
			":model:m1": but(running, "rev", "9", "again", "1", "outdated", "1", "refresh_why", "saved while running: again",
				"trying_since", "2026-11-21T06:00:00.000Z"),
			":payload:m1": `{"input_url":"v"}`, "-input": list{"x"}, ":journal": events{{"event": "update"}},
			":stats": hash{"update": "1"},
		}),
	},
	{
		name: "save of other labels",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:kind", "feed", "label:tenant", "t1"),
			":label:kind=feed": set{"m1": true}, ":label:tenant=t1": set{"m1": true, "m2": true}}),
		act: func(b *bench, r *Record) *Transition {
			decision, _, err := r.Put(model.Definition{UID: "m1", Payload: r.Payload, Labels: map[string]string{"kind": "feed", "tenant": "t2"}}, policy.Default(), true, b.now)
			must(b.t, err)
			return r.Decide(decision, b.now)
		},
		want: and(waitingKeys(), keys{
			":model:m1":        but(dueModel, "rev", "8", "label:kind", "feed", "label:tenant", "t2"),
			":label:kind=feed": set{"m1": true}, ":label:tenant=t1": set{"m2": true}, ":label:tenant=t2": set{"m1": true},
			":journal": events{{"event": "update"}}, ":stats": hash{"update": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "save of another host",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:host", "a.example"), ":payload:m1": `{"input_url":"https://a.example/f"}`,
			":label:host=a.example": set{"m1": true, "m2": true}}),
		act: func(b *bench, _ *Record) *Transition {
			return b.put("m1", `{"input_url":"https://me@B.example.:8443/f"}`)
		},
		want: and(waitingKeys(), keys{
			":model:m1":             but(dueModel, "rev", "8", "label:host", "b.example", "refresh_why", "saved while due"),
			":payload:m1":           `{"input_url":"https://me@B.example.:8443/f"}`,
			":label:host=a.example": set{"m2": true}, ":label:host=b.example": set{"m1": true},
			":journal": events{{"event": "update"}}, ":stats": hash{"update": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "save of a label host, which goes before that of the input_url",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:host", "a.example"), ":payload:m1": `{"input_url":"https://a.example/f"}`,
			":label:host=a.example": set{"m1": true}}),
		act: func(b *bench, r *Record) *Transition {
			decision, _, err := r.Put(model.Definition{UID: "m1", Payload: r.Payload, Labels: map[string]string{"host": "ours"}}, policy.Default(), true, b.now)
			must(b.t, err)
			return r.Decide(decision, b.now)
		},
		want: and(waitingKeys(), keys{
			":model:m1":        but(dueModel, "rev", "8", "label:host", "ours"),
			":payload:m1":      `{"input_url":"https://a.example/f"}`,
			":label:host=ours": set{"m1": true},
			":journal":         events{{"event": "update"}}, ":stats": hash{"update": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "disable of a model that was saved before hosts were stored",
		seed: and(waitingKeys(), keys{":payload:m1": `{"input_url":"https://a.example/f"}`}),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Disable("", "", b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":model:m1": hash{"rev": "8", "refresh_why": "disabled by hand", "label:host": "a.example",
				"refresh_disabled_until_update": "1", "refresh_disabled_at": "2026-11-21T06:00:00.000Z", "refresh_disabled_by": "hand"},
			":payload:m1": `{"input_url":"https://a.example/f"}`, ":due": scores{"m2": six}, ":journal": events{{"event": "disable"}},
			":disabled": scores{"m1": six}, ":label:host=a.example": set{"m1": true}, ":stats": hash{"disable": "1"},
		},
	},
	{
		name: "mend of a model that was saved before hosts were stored, and stands in the set of another",
		seed: and(waitingKeys(), keys{":payload:m1": `{"input_url":"https://a.example/f"}`, ":label:host=b.example": set{"m1": true}}),
		act: func(_ *bench, r *Record) *Transition {
			return r.Leave(Index{KeyLabel, "host=b.example"})
		},
		want: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:host", "a.example"), ":payload:m1": `{"input_url":"https://a.example/f"}`,
			":label:host=a.example": set{"m1": true}, ":wake": list{"1"}}),
	},
	{
		name: "removal of a model with a host",
		seed: and(waitingKeys(), keys{":model:m1": but(dueModel, "label:host", "a.example"), ":payload:m1": `{"input_url":"https://a.example/f"}`,
			":label:host=a.example": set{"m1": true}}),
		act:  func(_ *bench, r *Record) *Transition { return r.Remove() },
		want: keys{":due": scores{"m2": six}, ":journal": events{{"event": "remove"}}, ":stats": hash{"remove": "1"}},
	},
	{
		name: "run by force", answers: "n1 answer",
		seed: and(runningKeys(), keys{"-input": list{queuedEntry}, ":claimed:control": list{"n1 answer"}, ":holder": "p1"}),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Run(true, b.now)
			return r.Decide(decision, b.now)
		},
		want: and(idleKeys, keys{
			":holder":     "p1",
			":model:m1":   ended(running, "attempt_no", "", "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "run by hand", "refresh_for", "run", "last_attempt_uid", ""),
			":urgent":     scores{"m1": six - 100*365*86400000},
			":journal":    events{{"event": "run", "ended_attempt_no": "1", "ended_attempt_uid": "a1", "reason": "superseded: run by hand"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","is":"run","limit":600000,"reason":"superseded: run by hand","next":0,"why":"run by hand"}`},
			":stats":      hash{"run": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "disable", answers: "n1 answer",
		seed: and(waitingKeys(), keys{":claimed:control": list{"n1 answer"}, ":holder": "p1"}),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Disable("not paid", "", b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder": "p1",
			":model:m1": hash{"rev": "8", "refresh_why": "disabled by hand",
				"refresh_disabled_until_update": "1", "refresh_disabled_at": "2026-11-21T06:00:00.000Z", "refresh_disabled_user_friendly_reason": "not paid", "refresh_disabled_by": "hand"},
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m2": six}, ":journal": events{{"event": "disable"}},
			":disabled": scores{"m1": six}, ":stats": hash{"disable": "1"},
		},
	},
	{
		name: "enable", answers: "n1 answer",
		seed: keys{":model:m1": hash{"rev": "8", "attempt_no": "4", "refresh_disabled_until_update": "1",
			"refresh_disabled_user_friendly_reason": "not paid"}, ":claimed:control": list{"n1 answer"}, ":holder": "p1", ":disabled": scores{"m1": six}},
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Enable(b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder":   "p1",
			":model:m1": hash{"rev": "9", "refresh_at": "2026-11-21T06:00:00.000Z", "refresh_why": "enabled: nothing planned, starts now"},
			":due":      scores{"m1": six}, ":journal": events{{"event": "enable"}}, ":stats": hash{"enable": "1"},
			":wake": list{"1"},
		},
	},
	{
		name: "remove", answers: "n1 answer",
		seed: and(runningKeys(), keys{":due": scores{"m2": six}, ":history:m1": list{"old"}, "-input": list{queuedEntry},
			":claimed:control": list{"n1 answer"}, ":holder": "p1", ":failing": scores{"m1": six, "m2": six}, ":label:tenant=t1": set{"m1": true, "m2": true},
			":errors": scores{http503: 2}, ":error:" + http503: http503Hash,
			":model:m1": but(running, "label:tenant", "t1", "failing_since", "2026-11-21T06:00:00.000Z", "error", http503)}),
		act: func(_ *bench, r *Record) *Transition { return r.Remove() },
		want: keys{
			":holder": "p1", ":due": scores{"m2": six}, ":running": scores{"m2": six},
			":journal": events{{"event": "remove"}}, ":failing": scores{"m2": six}, ":label:tenant=t1": set{"m2": true},
			":errors": scores{http503: 1}, ":error:" + http503: but(http503Hash, "ended", "1"), ":stats": hash{"remove": "1"},
		},
	},
	{
		name: "import of a new model", act: imported,
		seed: keys{":due": scores{"m2": six}, ":history:m1": list{"left over"}},
		want: keys{
			":model:m1": but(importedModel, "rev", strconv.Itoa(six)), ":payload:m1": `{"input_url":"u"}`,
			":due": scores{"m1": six - minute, "m2": six}, ":failing": scores{"m1": six - 2*minute},
			":history:m1": list{"newer", "older"}, ":journal": events{{"event": "import"}}, ":stats": hash{"import": "1"},
			":wake": list{"1"},
		},
	},
	{
		name: "import in place of a running model", act: imported,
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry}, ":history:m1": list{"old", "oldest", "first"}}),
		want: and(idleKeys, keys{
			":model:m1": but(importedModel, "rev", "9", "fence", "1795240740000"), ":due": scores{"m1": six - minute}, "-input": list{"x"},
			":failing": scores{"m1": six - 2*minute}, ":history:m1": list{"newer", "older"},
			":journal": events{{"event": "import"}}, ":stats": hash{"import": "1"}, ":wake": list{"1"},
		}),
	},
}

var watched = keys{":policies": hash{"p": `{"timeout":"10m","retries":[0,"1m","5m"],"alignment":"align_planned","on_exhausted":"next_planned","fresh_within":"1h","warn_within":"30m"}`}}

// freshnessCases are how fresh a model is, and what the doctor repairs.
var freshnessCases = []eventCase{
	{
		name: "success of a stale model", answers: "oanswer", act: successOf,
		seed: and(runningKeys(), watched, answered, keys{
			":model:m1": but(running, "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T05:30:00.000Z", "last_success_at", "2026-11-21T04:30:00.000Z"),
			":stale":    scores{"m1": six - 30*minute, "m2": six},
		}),
		want: and(idleKeys, rest, watched, keys{
			":model:m1": ended(running, "policy", "p", "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "", "trying_since", "",
				"last_success_at", "2026-11-21T06:00:00.000Z", "fence", "", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":stale": scores{"m2": six}, ":stale_at": scores{"m1": six + 30*minute},
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
			":outbox":     events{{"event": "fresh", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "fresh_again": "1"},
		}),
	},
	{
		name: "success of a model that is stale and was disabled by a failure", answers: "oanswer", act: successOf,
		seed: and(runningKeys(), watched, answered, keys{
			":model:m1": but(running, "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T05:30:00.000Z", "fresh_since", "2026-11-21T04:30:00.000Z",
				"final_failure_at", "2026-11-21T05:00:00.000Z"),
			":stale": scores{"m1": six - 30*minute},
		}),
		want: and(idleKeys, rest, watched, keys{
			":model:m1": ended(running, "policy", "p", "refresh_at", "", "refresh_why", "finished: one-shot", "attempt_no", "", "trying_since", "",
				"last_success_at", "2026-11-21T06:00:00.000Z", "fence", "", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":stale_at": scores{"m1": six + 30*minute},
			":journal":  events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
			":outbox": events{
				{"event": "recovered", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"},
				{"event": "fresh", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"},
			},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","limit":600000,"why":"finished: one-shot"}`},
			":stats":      hash{"success": "1", "fresh_again": "1", "recovered": "1"},
		}),
	},
	{
		name: "became late",
		seed: and(waitingKeys(), watched, keys{
			":model:m1": but(dueModel, "policy", "p", "freshness", "fresh", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:30:00.000Z"),
			":stale_at": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.ChangeFreshness(b.now), b.now) },
		want: and(waitingKeys(), watched, keys{
			":model:m1": but(dueModel, "rev", "8", "policy", "p", "freshness", "late", "stale_at", "2026-11-21T06:30:00.000Z", "last_success_at", "2026-11-21T05:30:00.000Z"),
			":stale_at": scores{"m1": six + 30*minute, "m2": six}, ":late": scores{"m1": six + 30*minute},
			":journal": events{{"event": "became_late", "freshness_was": "fresh"}}, ":stats": hash{"became_late": "1"},
			":wake": list{"1"},
		}),
	},
	{
		name: "became stale while an attempt runs",
		seed: and(runningKeys(), watched, keys{
			":model:m1": but(running, "policy", "p", "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:00:00.000Z"),
			":stale_at": scores{"m1": six}, ":late": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.ChangeFreshness(b.now), b.now) },
		want: and(runningKeys(), watched, keys{
			":model:m1": but(running, "rev", "9", "policy", "p", "freshness", "stale", "stale_at", "2026-11-21T06:00:00.000Z", "last_success_at", "2026-11-21T05:00:00.000Z"),
			":late":     scores{"m2": six}, ":stale": scores{"m1": six},
			":journal": events{{"event": "became_stale", "freshness_was": "late"}},
			":outbox":  events{{"event": "stale", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1", "last_success_at": "2026-11-21T05:00:00.000Z"}},
			":stats":   hash{"became_stale": "1"},
		}),
	},
	{
		name: "watch of a model whose policy promises nothing any more",
		seed: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "freshness", "late", "stale_at", "2026-11-21T06:00:00.000Z", "fresh_since", "2026-11-21T05:00:00.000Z"),
			":stale_at": scores{"m1": six, "m2": six}, ":late": scores{"m1": six, "m2": six},
		}),
		act: func(b *bench, r *Record) *Transition { return r.Decide(r.ChangeFreshness(b.now), b.now) },
		want: and(waitingKeys(), keys{
			":model:m1": but(dueModel, "rev", "8"), ":stale_at": scores{"m2": six}, ":late": scores{"m2": six},
			":journal": events{{"event": "watch", "freshness_was": "late"}}, ":stats": hash{"watch": "1"}, ":wake": list{"1"},
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

func TestACommandIsForgottenAfterADay(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		day := float64(24 * time.Hour / time.Millisecond)
		b.seed(keys{":commands": scores{"old": six - day - 1, "young": six - day + 1}, ":claimed:p1": list{"put"}})
		b.now = time.UnixMilli(six)
		expectCodes(t, b.commit(Item{Transition: b.put("m1", "{}"), Message: Claimed{"put"}, CommandID: "new"}), CodeApplied)
		expectEqual(t, "commands", any(scores{"young": six - day + 1, "new": six}), b.state()[":commands"])
	})
}
