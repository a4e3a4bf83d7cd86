package store

import (
	"context"
	"math"
	"testing"
	"time"
)

func (b *bench) readDue(limit int) Due {
	b.t.Helper()
	due, err := b.ReadDue(context.Background(), DueRequest{Limit: limit})
	must(b.t, err)
	return due
}

func TestReadDueTellsWhatIsPastAndWhatIsNext(t *testing.T) {
	tests := []struct {
		name string
		seed keys
		want Due
	}{
		{
			name: "nothing",
			want: Due{Sharers: 1, Urgent: list{}, Due: list{}, Expired: list{}},
		},
		{
			name: "oldest first, and exactly now is past",
			seed: keys{":due": scores{"new": six, "old": six - 2, "mid": six - 1, "next": six + 1}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{"old", "mid", "new"}, Expired: list{}, Next: time.UnixMilli(six + 1).UTC()},
		},
		{
			name: "deadlines likewise",
			seed: keys{":running": scores{"new": six, "old": six - 2, "next": six + 5}, "-input": list{"x", "y"}},
			want: Due{Sharers: 1, Urgent: list{}, Queued: 2, Due: list{}, Expired: list{"old", "new"}, Next: time.UnixMilli(six + 5).UTC()},
		},
		{
			name: "the earlier of both is next",
			seed: keys{":due": scores{"a": six + 9}, ":running": scores{"b": six + 8}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{}, Expired: list{}, Next: time.UnixMilli(six + 8).UTC()},
		},
		{
			name: "and the other way round",
			seed: keys{":due": scores{"a": six + 8}, ":running": scores{"b": six + 9}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{}, Expired: list{}, Next: time.UnixMilli(six + 8).UTC()},
		},
		{
			name: "at most three of each kind",
			seed: keys{":due": scores{"a": 1, "b": 2, "c": 3, "d": 4}, ":running": scores{"e": 1, "f": 2, "g": 3, "h": 4}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{"a", "b", "c"}, Expired: list{"e", "f", "g"}},
		},
		{
			name: "what is urgent likewise, apart",
			seed: keys{":urgent": scores{"b": six, "a": six - 1, "next": six + 2}, ":due": scores{"c": six - 5}},
			want: Due{Sharers: 1, Urgent: list{"a", "b"}, Due: list{"c"}, Expired: list{}, Next: time.UnixMilli(six + 2).UTC()},
		},
		{
			name: "whose freshness changes likewise, with the next change",
			seed: keys{":stale_at": scores{"d": six + 3, "c": six, "b": six - 1, "a": six - 2, "e": six - 3}, ":due": scores{"x": six + 9}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{}, Expired: list{}, Ages: list{"e", "a", "b"}, Next: time.UnixMilli(six + 3).UTC()},
		},
		{
			name: "scores that a person wrote stop nobody",
			seed: keys{":due": scores{"half": six + 0.5, "old": six - 0.5}, ":running": scores{"never": math.Inf(1), "always": math.Inf(-1)}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{"old"}, Expired: list{"always"}, Next: time.UnixMilli(six).UTC()},
		},
		{
			name: "for ever is no next time",
			seed: keys{":due": scores{"never": math.Inf(1)}},
			want: Due{Sharers: 1, Urgent: list{}, Due: list{}, Expired: list{}},
		},
	}
	everywhere(t, func(t *testing.T, b *bench) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				b.server.Flush(t)
				b := *b
				b.t = t
				b.seed(test.seed)
				test.want.Now = b.now
				if test.want.Ages == nil {
					test.want.Ages = list{}
				}
				b.unchanged(func() { expectEqual(t, "due", test.want, b.readDue(3)) })
			})
		}
	})
}

func TestReadDueOnTheClockOfRedisSeesWhatIsPastThere(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		now := b.redis.Time(t.Context()).Val()
		b.seed(keys{":due": scores{"past": float64(now.UnixMilli()), "ahead": float64(now.Add(time.Hour).UnixMilli())}})
		due := b.readDue(3)
		if due.Now.Before(now.Truncate(time.Millisecond)) || due.Now.After(now.Add(time.Hour)) {
			t.Errorf("now %v, want soon after %v", due.Now, now)
		}
		expectEqual(t, "due", list{"past"}, due.Due)
		expectEqual(t, "next", now.Add(time.Hour).UTC().Truncate(time.Millisecond), due.Next)
	}, func(c *Config) { c.Clock = nil })
}
