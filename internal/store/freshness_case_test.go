package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

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

// TestModelsWhoseCreateTheJournalDoesNotTellCountFromThenOn creates more models in one batch than the journal tells of. One changes since.
func TestModelsWhoseCreateTheJournalDoesNotTellCountFromThenOn(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		const many = 500
		promises := policy.Default()
		promises.FreshWithin = time.Hour
		batch := Batch{Now: b.now}
		for i := range many {
			record := b.load(fmt.Sprint("m", i))
			decision, _, err := record.Put(model.Definition{UID: record.UID, Payload: "{}"}, promises, false, b.now)
			must(t, err)
			batch.Items = append(batch.Items, Item{Transition: record.Decide(decision, b.now)})
		}
		if codes, err := b.Commit(t.Context(), batch); err != nil || slices.ContainsFunc(codes, func(c Code) bool { return c != CodeApplied }) {
			t.Fatalf("expected all created, found %v, %v", codes, err)
		}
		b.seed(keys{":model:old": hash{"rev": "1795237200007", "freshness": "fresh"}}) // an hour ago, with seven transitions
		later := []string{"event", "became_stale", "uid", "m0", "at", "2026-11-21T06:00:01.000Z", "freshness_was", "never", "freshness", "stale"}
		must(t, b.redis.XAdd(t.Context(), &redis.XAddArgs{Stream: b.Keys.Journal, Values: later}).Err())
		for ago, want := range map[time.Duration]FreshnessCounts{time.Minute: {model.Fresh: 1}, 0: {model.Fresh: 1, model.FreshnessNever: many}} {
			now := FreshnessCounts{model.Fresh: 1, model.FreshnessNever: many - 1, model.FreshnessStale: 1}
			past, err := b.Report().PastFreshness(t.Context(), b.now.Add(-ago), now, func(string) bool { return true })
			failIf(t, past.Counts[model.Fresh] != want[model.Fresh] || past.Counts.Watched() != want.Watched() || err != nil || len(past.Stale) > 0,
				"%s ago: expected %v, found %v, %v", ago, want, past, err)
		}
	})
}
