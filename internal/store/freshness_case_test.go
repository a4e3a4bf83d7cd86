package store

// watched is a policy that promises freshness.
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
				"last_success_at", "2026-11-21T06:00:00.000Z", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":stale": scores{"m2": six}, ":stale_at": scores{"m1": six + 30*minute},
			":journal":    events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
			":outbox":     events{{"event": "fresh", "uid": "m1", "at": "2026-11-21T06:00:00.000Z", "attempt_no": "1"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"success","limit":600000,"why":"finished: one-shot"}`},
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
				"last_success_at", "2026-11-21T06:00:00.000Z", "freshness", "fresh", "stale_at", "2026-11-21T06:30:00.000Z"),
			":stale_at": scores{"m1": six + 30*minute},
			":journal":  events{{"event": "success", "ended_attempt_no": "1", "freshness_was": "stale"}},
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
