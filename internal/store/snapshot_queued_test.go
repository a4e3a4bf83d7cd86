package store

import (
	"context"
	"fmt"
	"testing"
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
	must(b.t, err)
	return queued
}

func TestQueuedFindsEveryAttemptByItsUID(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		expectEqual(t, "of none", map[string]string{}, b.queued())
		b.seed(keys{"-input": inputEntries(3)})
		expectEqual(t, "of three", map[string]string{"a0": inputEntry(0), "a1": inputEntry(1), "a2": inputEntry(2)}, b.queued())
	})
}

func TestQueuedLeavesOutWhatIsNotOurs(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(keys{"-input": list{"garbage", `{"refresh_attempt_uid":""}`, "\xff", inputEntry(1), `[]`}})
		expectEqual(t, "queued", map[string]string{"a1": inputEntry(1)}, b.queued())
	})
}
