package faults

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var callsOfCommand = regexp.MustCompile(`cmdstat_([^:]+):calls=(\d+)`)

// calls counts the commands that Redis runs, also within scripts, without those of this test and its workers.
func (f *fleet) calls() map[string]int {
	f.t.Helper()
	info, err := f.Redis.Info(f.ctx, "commandstats").Result()
	must(f.t, err)
	calls := map[string]int{}
	for _, found := range callsOfCommand.FindAllStringSubmatch(info, -1) {
		calls[found[1]], _ = strconv.Atoi(found[2])
	}
	for _, own := range []string{"xread", "blmpop", "info", "config|resetstat"} {
		delete(calls, own)
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

// TestAnAttemptAloneCostsFewCalls counts what Redis runs for an attempt that shares its rounds with no other. Under a limit its start is in the
// commit of the end before.
func TestAnAttemptAloneCostsFewCalls(t *testing.T) {
	const attempts = 50
	plain := func(t *testing.T) *fleet {
		f := newFleet(t)
		f.saveApart(attempts, 20*time.Millisecond)
		return f
	}
	limited := func(t *testing.T) *fleet { return newCrowd(t, 1, attempts, 1, time.Minute).fleet }
	for name, test := range map[string]struct {
		fleet func(t *testing.T) *fleet
		most  float64
	}{
		"plain":         {plain, 80},
		"under a limit": {limited, 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := test.fleet(t)
			f.runDaemons(dispatcher.Config{Tick: 10 * time.Second})
			check.Must(t, f.Redis.ConfigResetStat(f.ctx).Err())
			f.run(f.work)
			f.AwaitEvent(model.EventSuccess, attempts)
			calls, sum := f.calls(), -attempts // the results that workers push
			for _, count := range calls {
				sum += count
			}
			got := float64(sum) / attempts
			failIf(t, got > test.most, "want at most %.0f calls an attempt, got %.1f: %v", test.most, got, calls)
			t.Logf("%.1f calls an attempt: %v", got, calls)
		})
	}
}
