package faults

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// garbage is how many unusable messages each of the floods brings.
var garbage = long.Or(5_000, 100_000)

// flood pushes unusable messages into a list.
func (f *fleet) flood(list string, count int) {
	f.t.Helper()
	const batch = 5000
	for first := 0; first < count; first += batch {
		var entries []any
		for i := first; i < min(first+batch, count); i++ {
			entries = append(entries, fmt.Sprintf(`{"type":"success","n":%d,"garbage":"%s"`, i, strings.Repeat("x", i%200)))
		}
		if err := f.Redis.RPush(f.ctx, list, entries...).Err(); err != nil {
			f.t.Fatal(err)
		}
	}
}

func TestGarbageAndMessagesOf100MBNeitherStopTheQueueNorGrowMemory(t *testing.T) {
	t.Parallel()
	huge := long.Or(1, 5)
	f := newFleet(t)
	giant := strings.Repeat("x", 100_000_000)
	for range huge {
		if err := f.Redis.RPush(f.ctx, f.Store.Keys.Output, giant).Err(); err != nil {
			t.Fatal(err)
		}
	}
	f.flood(f.Store.Keys.Output, garbage)
	f.flood(f.Store.Keys.Control, garbage)
	f.put(1)
	f.run(f.work)
	dispatcher, poller := f.dispatcher(), f.poller("flooded")
	began := time.Now()
	f.AwaitEvent(model.EventSuccess, 1)
	took := time.Since(began)
	testkit.Eventually(t, "everything is rejected", func() bool { return f.Stats()["malformed"] == 2*garbage })
	all := time.Since(began)
	testkit.Eventually(t, "redis holds less than 100 MB", func() bool { return f.usedMemory() < 100<<20 })
	stats, memory, held := f.Stats(), f.usedMemory(), poller.Memory()
	poller.Stop()
	dispatcher.Stop()
	t.Logf("%d messages of 100 MB and %d of garbage were rejected within %s, a result behind them counted after %s; the poller held at most %d MB, redis holds %d MB",
		huge, 2*garbage, all.Round(time.Millisecond), took.Round(time.Millisecond), held>>20, memory>>20)
	if stats["oversized"] != huge || stats["success"] != 1 {
		t.Errorf("want %d oversized and 1 success, got %v", huge, stats)
	}
	if held > 100<<20 {
		t.Errorf("want at most 100 MB in the poller, got %d", held)
	}
	if kept := len(f.List(f.Store.Keys.Rejected)); kept != 1000 {
		t.Errorf("want the last 1000 kept, got %d", kept)
	}
}

// usedMemory is what Redis holds, in bytes.
func (f *fleet) usedMemory() (bytes int64) {
	f.t.Helper()
	info, err := f.Redis.Info(f.ctx, "memory").Result()
	_, rest, _ := strings.Cut(info, "used_memory:")
	if _, scanErr := fmt.Sscan(rest, &bytes); err != nil || scanErr != nil {
		f.t.Fatal(err, scanErr)
	}
	return bytes
}
