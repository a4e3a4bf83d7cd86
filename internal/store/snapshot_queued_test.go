package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

func inputEntry(i int) string {
	return fmt.Sprintf(`{"big_table_uid":"m%d","refresh_attempt_uid":"a%d"}`, i, i)
}

func inputEntries(n int) list {
	var entries list
	for i := range n {
		entries = append(entries, inputEntry(i))
	}
	return entries
}

func (b *bench) queued() map[string]string {
	b.t.Helper()
	queued, err := b.Queued(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return queued
}

func TestQueuedFindsEveryAttemptByItsUID(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for _, n := range []int{0, 1, 999, 1000, 1001, 2000, 2001} {
			b.server.Flush(t)
			b.seed(keys{"-input": inputEntries(n)})
			queued := b.queued()
			if len(queued) != n {
				t.Errorf("%d of %d found", len(queued), n)
			}
			for i := range n {
				if queued[fmt.Sprint("a", i)] != inputEntry(i) {
					t.Fatalf("of %d: attempt a%d is %q", n, i, queued[fmt.Sprint("a", i)])
				}
			}
		}
	})
}

func TestQueuedLeavesOutWhatIsNotOurs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"garbage", `{"refresh_attempt_uid":""}`, "\xff", inputEntry(1), `[]`}})
		expectEqual(t, "queued", map[string]string{"a1": inputEntry(1)}, b.queued())
	})
}

// between does something to the list after each command of the store.
type between struct{ act func() }

func (b between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "lrange" {
			b.act()
		}
		return err
	}
}

// An entry that is missed while it waits looks like one that a worker took, and its model would fail by timeout.
func TestQueuedMissesNoEntryThatStaysWhateverHappensToTheOthers(t *testing.T) {
	const n = 3500
	tests := map[string]func(p redis.Pipeliner, round int){
		"workers take the oldest":            func(p redis.Pipeliner, _ int) { p.LPopCount(context.Background(), benchQueue+"-input", 300) },
		"dispatchers add":                    func(p redis.Pipeliner, round int) { push(p, 10_000+round*300) },
		"dispatchers take the newest back":   func(p redis.Pipeliner, round int) { withdraw(p, n-1-round*300) },
		"dispatchers take some in the midst": func(p redis.Pipeliner, round int) { withdraw(p, n-600-round*300) },
	}
	testkit.Both(t, func(t *testing.T, s *testkit.Server) {
		for name, change := range tests {
			t.Run(name, func(t *testing.T) {
				s.Flush(t)
				b, other, round := newBench(t, s), s.Client(t), 0
				b.seed(keys{"-input": inputEntries(n)})
				stood := setOf(inputEntries(n))
				b.redis.AddHook(between{func() {
					_, _ = other.Pipelined(context.Background(), func(p redis.Pipeliner) error { change(p, round); return nil })
					round++
				}})
				found := setOf(slices.Collect(maps.Values(b.queued())))
				for _, entry := range other.LRange(t.Context(), benchQueue+"-input", 0, -1).Val() {
					if !found[entry] && stood[entry] {
						t.Fatalf("missed %s, and maybe more", entry)
					}
				}
			})
		}
	})
}

func setOf(entries list) map[string]bool {
	set := map[string]bool{}
	for _, entry := range entries {
		set[entry] = true
	}
	return set
}

func push(p redis.Pipeliner, from int) {
	for i := range 300 {
		p.RPush(context.Background(), benchQueue+"-input", inputEntry(from+i))
	}
}

func withdraw(p redis.Pipeliner, from int) {
	for i := range 300 {
		p.LRem(context.Background(), benchQueue+"-input", 1, inputEntry(from-i))
	}
}
