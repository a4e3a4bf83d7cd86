package store

// mendCases are what the doctor repairs.
var mendCases = []eventCase{
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
