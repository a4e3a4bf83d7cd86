package store

import "testing"

func TestAQueueThatWasNeverUsedKnowsOfTheOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, key := range []string{"{thumbs:0}:stats", "{thumbs:1}:stats", "tables:stats", "{feeds}:stats", "a b:stats", "text:status"} {
			b.redis.HSet(t.Context(), key, "create", 1)
		}
		queue, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
		must(t, err)
		if used, err := queue.Report().Used(t.Context()); used || err != nil {
			t.Errorf("want a queue that was never used, got %v (%v)", used, err)
		}
		others, err := queue.Report().Others(t.Context())
		must(t, err)
		if !b.Clients.Clustered { // a node of a cluster knows only what it holds
			expectEqual(t, "others", []string{"tables", "thumbs", "{feeds}"}, others)
		}
		b.mustApply(b.put("m1", "{}"))
		if used, err := queue.Report().Used(t.Context()); !used || err != nil {
			t.Errorf("want a queue that is used, got %v (%v)", used, err)
		}
	})
}
