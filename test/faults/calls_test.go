package faults

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var callsOfCommand = regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`)

// calls counts the commands that Redis runs, also within scripts, without those of the workers.
func (f *fleet) calls() map[string]int {
	f.t.Helper()
	info, err := f.Redis.Info(f.ctx, "commandstats").Result()
	must(f.t, err)
	calls := map[string]int{}
	for _, found := range callsOfCommand.FindAllStringSubmatch(info, -1) {
		calls[found[1]], _ = strconv.Atoi(found[2])
	}
	return calls
}

// saveApart saves one-shots that are due one after the other.
func (f *fleet) saveApart(count int, apart time.Duration) {
	f.t.Helper()
	now, err := f.Store.Now(f.ctx)
	must(f.t, err)
	var transitions []*store.Transition
	for i := range count {
		record := &store.Record{Model: model.Model{UID: fmt.Sprint("m", i)}}
		due := now.Add(time.Second + time.Duration(i)*apart)
		decision, _, err := record.Put(model.Definition{UID: record.UID, Payload: `{"input_url":"http://feed"}`}, policy.Default(), false, due)
		must(f.t, err)
		transitions = append(transitions, record.Decide(decision, now))
	}
	f.Commit(now, transitions...)
}

// TestAnAttemptAloneCostsFewCalls counts what Redis runs for an attempt that shares its rounds with no other.
func TestAnAttemptAloneCostsFewCalls(t *testing.T) {
	const attempts = 50
	for name, test := range map[string]struct {
		save func(f *fleet)
		most int
	}{
		"plain":         {func(f *fleet) { f.saveApart(attempts, 20*time.Millisecond) }, 80},
		"under a limit": {nil, 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fleet
			if test.save == nil {
				f = newCrowd(t, 1, attempts, 1, time.Minute).fleet
			} else {
				f = newFleet(t)
				test.save(f)
			}
			f.runDaemons(dispatcher.Config{Tick: 10 * time.Second})
			check.Must(t, f.Redis.ConfigResetStat(f.ctx).Err())
			f.run(f.work)
			f.AwaitEvent(model.EventSuccess, attempts)
			calls, sum := f.calls(), 0
			var lines []string
			for _, command := range slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return calls[b] - calls[a] }) {
				sum += calls[command]
				lines = append(lines, fmt.Sprintf("%s %.2f", command, float64(calls[command])/attempts))
			}
			got := float64(sum)/attempts - 2
			t.Logf("%.1f: %s", got, strings.Join(lines, ", "))
			failIf(t, got > float64(test.most), "want at most %d calls an attempt, got %.1f", test.most, got)
		})
	}
}
