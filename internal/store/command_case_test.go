package store

import (
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// importedModel is what a model becomes that has failed elsewhere.
var importedModel = hash{
	"refresh_at": "2026-11-21T05:59:00.000Z", "refresh_why": "retry 3/6 +1m", "refresh_for": "retry", "attempt_no": "3",
	"failing_since": "2026-11-21T05:58:00.000Z",
}

func imported(b *bench, r *Record) *Transition {
	moved := model.Moved{Definition: model.Definition{UID: "m1", Payload: `{"input_url":"u"}`}, Past: []string{"newer", "older"}}
	moved.State = NewRecord("m1", importedModel).State
	decision, _, err := r.Import(moved, policy.Default(), r.Exists, nil, b.now)
	must(b.t, err)
	return r.Decide(decision, b.now)
}

// commandCases are what people and applications ask for.
var commandCases = []eventCase{
	{
		name: "create", answers: "canswer",
		seed: keys{":claimed:control": list{"canswer"}, ":holder": "p1"},
		act:  func(b *bench, _ *Record) *Transition { return b.put("m1", `{"input_url":"u"}`) },
		want: keys{
			":holder": "p1", ":model:m1": but(dueModel, "rev", "1795240800000"), ":payload:m1": `{"input_url":"u"}`,
			":due": scores{"m1": six}, ":journal": events{{"event": "create"}}, ":stats": hash{"create": "1"},
			":wake": list{"1"},
		},
	},
	{
		name: "update of a queued model", answers: "canswer",
		seed: and(runningKeys(), keys{"-input": list{"x", queuedEntry, "y"}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
		act:  func(b *bench, _ *Record) *Transition { return b.put("m1", `{"input_url":"v"}`) },
		want: and(runningKeys(), keys{
			":holder":     "p1",
			":model:m1":   but(running, "rev", "9", "trying_since", "2026-11-21T06:00:00.000Z"), // the give-up window begins anew
			":payload:m1": `{"input_url":"v"}`, "-input": list{"x", strings.Replace(queuedEntry, `"u"`, `"v"`, 1), "y"},
			":journal": events{{"event": "update"}}, ":stats": hash{"update": "1"},
		}),
	},
	{
		name: "update of a model whose attempt a worker has", answers: "canswer",
		seed: and(runningKeys(), keys{"-input": list{"x"}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
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
		name: "run by force", answers: "canswer",
		seed: and(runningKeys(), keys{"-input": list{queuedEntry}, ":claimed:control": list{"canswer"}, ":holder": "p1"}),
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Run(true, b.now)
			return r.Decide(decision, b.now)
		},
		want: and(idleKeys, keys{
			":holder":     "p1",
			":model:m1":   ended(running, "attempt_no", "", "refresh_at", "2026-11-21T06:00:00.000Z", "refresh_why", "run by hand", "refresh_for", "run", "last_attempt_uid", ""),
			":urgent":     scores{"m1": six - 100*365*86400000},
			":journal":    events{{"event": "run", "ended_attempt_no": "1", "ended_attempt_uid": "a1", "reason": "superseded: run by hand"}},
			":history:m1": list{`{"at":"2026-11-21T06:00:00.000Z","took":60000,"uid":"a1","no":1,"is":"run","limit":600000,"reason":"superseded: run by hand","next":0,"why":"run by hand"}`},
			":stats":      hash{"run": "1"}, ":wake": list{"1"},
		}),
	},
	{
		name: "disable", answers: "canswer",
		seed: and(waitingKeys(), keys{":claimed:control": list{"canswer"}, ":holder": "p1"}),
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
		name: "enable", answers: "canswer",
		seed: keys{":model:m1": hash{"rev": "8", "attempt_no": "4", "refresh_disabled_until_update": "1",
			"refresh_disabled_user_friendly_reason": "not paid"}, ":claimed:control": list{"canswer"}, ":holder": "p1", ":disabled": scores{"m1": six}},
		act: func(b *bench, r *Record) *Transition {
			decision, _ := r.Enable(b.now)
			return r.Decide(decision, b.now)
		},
		want: keys{
			":holder":   "p1",
			":model:m1": hash{"rev": "9", "refresh_at": "2026-11-21T06:00:00.000Z", "refresh_why": "enabled: nothing planned, now"},
			":due":      scores{"m1": six}, ":journal": events{{"event": "enable"}}, ":stats": hash{"enable": "1"},
			":wake": list{"1"},
		},
	},
	{
		name: "remove", answers: "canswer",
		seed: and(runningKeys(), keys{":due": scores{"m2": six}, ":history:m1": list{"old"}, "-input": list{queuedEntry},
			":claimed:control": list{"canswer"}, ":holder": "p1", ":failing": scores{"m1": six, "m2": six}, ":label:tenant=t1": set{"m1": true, "m2": true},
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
			":model:m1": but(importedModel, "rev", "9"), ":due": scores{"m1": six - minute}, "-input": list{"x"},
			":failing": scores{"m1": six - 2*minute}, ":history:m1": list{"newer", "older"},
			":journal": events{{"event": "import"}}, ":stats": hash{"import": "1"}, ":wake": list{"1"},
		}),
	},
}
