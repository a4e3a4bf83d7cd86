package store

import (
	"strings"
	"time"
)

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
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a1","input_url":"u","attempt_no":1,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"}`},
			":journal": events{{"event": "start"}}, ":stats": hash{"start": "1"},
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
			":payload:m1": `{"input_url":"u"}`, ":due": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{`{"big_table_uid":"m1","refresh_attempt_uid":"a2","input_url":"u","attempt_no":2,` +
				`"deadline_at":"2026-11-21T06:10:00.000Z"}`},
			":journal": events{{"event": "start"}}, ":stats": hash{"start": "1", "retry": "1"},
		},
	},
	{
		name: "start of what is urgent", act: firstStartOf,
		seed: keys{":model:m1": but(dueModel, "refresh_for", "hand"), ":payload:m1": `{"input_url":"u"}`, ":urgent": scores{"m1": six, "m2": six}},
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "refresh_for", "hand", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`, ":urgent": scores{"m2": six}, ":running": scores{"m1": tenPast},
			"-input": list{strings.Replace(queuedEntry, "06:09", "06:10", 1)}, ":journal": events{{"event": "start"}},
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
		act:  func(b *bench, r *Record) *Transition { return r.Decide(r.Admit(b.now, "a1"), b.now) },
		want: keys{
			":model:m1": but(dueModel, "rev", "8", "refresh_at", "2026-11-21T06:10:00.000Z", "refresh_why", "if lost: retry 1/3 at once, none planned",
				"attempt_uid", "a1", "attempt_no", "1", "started_at", "2026-11-21T06:00:00.000Z", "deadline_at", "2026-11-21T06:10:00.000Z",
				"trying_since", "2026-11-21T06:00:00.000Z", "ticket", "1"),
			":payload:m1": `{"input_url":"u"}`, ":parked": scores{"m2": six}, ":parked:hold:h1": scores{"m2": six},
			":gates": scores{"hold:h1": six}, ":running": scores{"m1": tenPast},
			"-input": list{strings.Replace(queuedEntry, "06:09", "06:10", 1)}, ":journal": events{{"event": "start"}},
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
