package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func TestHistoryKeepsTheNewestAttempts(t *testing.T) {
	few := func(c *Config) { c.HistoryCap = 3 }
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		for i := range 5 {
			b.mustApply(b.start("m1", fmt.Sprint("a", i)))
			record := b.load("m1")
			b.mustApply(record.Decide(record.Fail(policy.Failure{}, b.now), b.now))
		}
		entries := b.state()[":history:m1"].(list)
		if len(entries) != 3 || !strings.Contains(entries[0], `"a4"`) || !strings.Contains(entries[2], `"a2"`) {
			t.Errorf("history %q, want a4, a3, a2", entries)
		}
	}, few)
}

func TestWhenTheLastAttemptStartedStandsInTheModelAndThenInItsHistory(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.mustApply(b.put("m1", "{}"))
		b.mustApply(b.start("m1", "a1"))
		started := b.now.Format("2006-01-02T15:04:05.000Z")
		expectEqual(t, "started_at", started, b.state()[":model:m1"].(hash)["started_at"])
		b.now = b.now.Add(time.Minute)
		record := b.load("m1")
		b.mustApply(record.Decide(record.Interrupt(b.now), b.now))
		var last struct {
			At   time.Time `json:"at"`
			Took int64     `json:"took"`
		}
		must(t, json.Unmarshal([]byte(b.state()[":history:m1"].(list)[0]), &last))
		expectEqual(t, "start in the history", started, last.At.Add(-time.Duration(last.Took)*time.Millisecond).Format("2006-01-02T15:04:05.000Z"))
		records, err := b.Report().History(t.Context(), "m1")
		if err != nil || len(records) != 1 || model.FormatTime(records[0].StartedAt) != started {
			t.Errorf("the history was read as %+v (%v), want a start at %s", records, err, started)
		}
	})
}

// Redis cuts a stream at the borders of its nodes, of 100 entries by default.
func TestAHistoryOfAWrongTypeStopsNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		b.seed(and(runningKeys(), keys{":history:m1": "a text"}))
		b.mustApply(expiryOf(b, b.load("m1")))
		expectEqual(t, "history", any("a text"), b.state()[":history:m1"])
		expectEqual(t, "stats", any(hash{"timeout": "1"}), b.state()[":stats"])
	})
}
