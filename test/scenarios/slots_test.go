package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// job is an attempt at work.
type job struct {
	uid, attempt string
	begins, ends time.Time
}

// workDay has workers that are always free: each takes an attempt at once, for as long as its model takes. It returns the jobs until an
// instant, and calls look each ten minutes.
func (q *policyQueue) workDay(end time.Time, length func(uid string) time.Duration, look func(now time.Time)) (done []job) {
	var running []job
	for next := q.Clock.Now(); ; {
		for entry, found := q.Take(); found; entry, found = q.Take() {
			now := q.Clock.Now()
			running = append(running, job{entry.UID, entry.AttemptUID, now, now.Add(length(entry.UID))})
		}
		slices.SortStableFunc(running, func(a, b job) int { return cmp.Or(a.ends.Compare(b.ends), cmp.Compare(a.uid, b.uid)) })
		at := q.nextDue()
		if len(running) > 0 && running[0].ends.Before(at) {
			at = running[0].ends
		}
		for ; !next.After(at) && next.Before(end); next = next.Add(10 * time.Minute) {
			q.Clock.Set(next)
			look(next)
		}
		if !at.Before(end) {
			return append(done, running...)
		}
		q.Clock.Set(at)
		for len(running) > 0 && !running[0].ends.After(at) {
			q.Say(fixture.Result("success", running[0].uid, running[0].attempt))
			done, running = append(done, running[0]), running[1:]
		}
		q.work()
	}
}

func TestTheSlotsThatThePlanNeedsAreThoseThatTheDayThenKeepsBusy(t *testing.T) {
	onQueue(t, func(t *testing.T, q *policyQueue) {
		rules := []string{
			`"rrule":"FREQ=HOURLY","policy":{"timeout":"15m"}`, `"rrule":"FREQ=MINUTELY;INTERVAL=25","policy":{"timeout":"8m","spread":"4m"}`,
			`"rrule":"FREQ=DAILY;BYHOUR=8,9","timezone":"Europe/Berlin","policy":{"timeout":"15m","spread":"2h"}`, `"policy":{"timeout":"15m"}`,
		}
		lengths := map[string]time.Duration{}
		for i := range 16 {
			uid := fmt.Sprintf("m%02d", i)
			lengths[uid] = time.Duration(20+i*13%400) * time.Second
			q.Command(fmt.Sprintf(`{"type":"put","uid":%q,"dtstart":"2026-01-01","refresh":"now",%s}`, uid, rules[i%len(rules)]))
		}
		q.work()
		const horizon = 10 * time.Minute
		queue := &store.Queue{Name: q.Store.Keys.Queue, Parts: []*store.Store{q.Store}}
		told := map[time.Time]operate.Slots{}
		begins := q.Clock.Now()
		jobs := q.workDay(begins.Add(time.Duration(long.Or(3, 24))*time.Hour), func(uid string) time.Duration { return lengths[uid] }, func(now time.Time) {
			if now.Sub(begins) > time.Hour { // how long each takes is known then
				told[now] = check.Got(operate.PlanSlots(t.Context(), queue, "10m"))(t)
			}
		})
		seen := map[int]bool{}
		for now, slots := range told {
			work, starts := forecast.NewWork(now, now.Add(horizon)), 0
			for _, job := range jobs {
				work.Add(job.begins, job.ends.Sub(job.begins))
				if !job.begins.Before(now) && job.begins.Before(now.Add(horizon)) {
					starts++
				}
			}
			failIf(t, slots.Slots != work.Slots() || slots.Starts != starts,
				"%s: %d slots and %d starts were planned, %d and %d were needed", now.Format("15:04"), slots.Slots, slots.Starts, work.Slots(), starts)
			seen[slots.Slots] = true
		}
		failIf(t, len(told) < 6 || len(seen) < 3, "want a day with calm and busy times, got %v", seen)
	})
}
