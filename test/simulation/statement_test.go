package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/alerts"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// truth is what hashes, lists and heartbeats show at an instant, without an index.
type truth struct {
	now                             time.Time
	due, running, failing, disabled int
	parked                          map[string]int // blocker, or its kind -> models
	never                           int
	silent                          map[model.Role]time.Duration // since the last heartbeat; absent: there was none
	front                           time.Duration                // since the attempt at the front of the input list was started; 0: none, or it is over
	waits                           time.Duration                // since the oldest due model is
	expired                         time.Duration                // since the first of the attempts has run out of time
	messages                        int
	held                            int
}

// see reads the truth, and takes nothing away.
func (w *world) see() truth {
	r, k := w.server, w.server.store.Keys
	t := truth{now: w.now, parked: map[string]int{}, silent: map[model.Role]time.Duration{}, messages: len(r.list(k.Output)) + len(r.list(k.Control))}
	for role, key := range k.Heartbeats() {
		for _, at := range r.scores(key) {
			silence := w.now.Sub(time.UnixMilli(int64(at)))
			if last, known := t.silent[role]; silence >= -time.Second && (!known || silence < last) {
				t.silent[role] = silence
			}
		}
	}
	for _, uid := range w.uids {
		m := r.hash(k.Model(uid))
		blocker, at := m["parked_by"], instant(m["refresh_at"])
		switch {
		case m["attempt_uid"] != "":
			t.running++
		case m["refresh_disabled_until_update"] != "":
			t.disabled++
		case blocker != "":
			t.parked[blocker]++
			t.parked[model.Blocker(blocker).Kind()]++
		case m["refresh_at"] != "" && !at.After(w.now):
			t.due++
			t.waits = max(t.waits, w.now.Sub(at))
		}
		if m["failing_since"] != "" {
			t.failing++
		}
		if m["freshness"] == string(model.FreshnessNever) {
			t.never++
		}
	}
	for _, at := range r.scores(k.Running) {
		t.expired = max(t.expired, w.now.Sub(time.UnixMilli(int64(at))))
	}
	entries := r.list(k.Input)
	if t.held = t.running - len(entries); len(entries) > 0 {
		entry, _ := r.store.Wire().ParseEntry(entries[0])
		if m := r.hash(k.Model(entry.UID)); m["attempt_uid"] == entry.AttemptUID {
			t.front = w.now.Sub(instant(m["started_at"]))
		}
	}
	return t
}

// aFewTicks is when something has waited for more than a few ticks.
const aFewTicks = 5 * time.Second

func (t *truth) quiet(role model.Role) bool {
	silence, known := t.silent[role]
	return !known || silence > aFewTicks
}

// stopped is who may be missing while something waits for it; empty: nobody.
func (t *truth) stopped() string {
	_, pools := t.silent[model.RoleWorker]
	switch {
	case max(t.waits, t.expired) > aFewTicks && t.quiet(model.RoleDispatcher):
		return "a dispatcher"
	case t.front > aFewTicks && t.quiet(model.RoleWorker) && (t.held <= 0 || pools):
		return "a worker"
	case t.messages > 0 && t.quiet(model.RolePoller):
		return "a poller"
	default:
		return ""
	}
}

// checkStatements compares each statement about the queue with the truth.
func (w *world) checkStatements() {
	q, err := alerts.Read(context.Background(), &store.Queue{Name: queueName, Parts: []*store.Store{w.server.store}})
	must(err)
	t, said := w.see(), map[string]string{}
	for _, one := range q.Findings() {
		said[one.Code] += one.Text + "\n"
	}
	number := func(code string) (n int) { _, _ = fmt.Sscan(said[code], &n); return n }
	for code, want := range map[string]int{
		"disabled": t.disabled, "parked-calendar": t.parked[model.BlockerCalendar], "parked-limit": t.parked[model.BlockerLimit], "parked-suspect": t.parked[model.BlockerSuspect],
	} {
		failIf(number(code) != want, "said %q of %s, and there are %d", said[code], code, want)
	}
	failIf(said["never"] != "" && (number("never") != t.never || t.failing == 0), "said %q, and there are %d, with %d that fail", said["never"], t.never, t.failing)
	for _, hold := range q.Holds {
		parked := t.parked[string(model.NewBlocker(model.BlockerHold, hold.ID))]
		failIf(int(hold.Parked) != parked, "said that %d models wait for the hold %s, and %d do", hold.Parked, hold.ID, parked)
		text := fmt.Sprintf("(hold %s)", hold.ID)
		failIf(!hold.Ended(w.now) && len(q.Holds) <= 5 && !strings.Contains(said["held"]+said["all-held"], text), "said nothing of the hold %s", hold.ID)
	}
	if counted := [2]int{int(q.Failing), int(q.Disabled)}; counted != [2]int{t.failing, t.disabled} {
		fail("counted %v failing and disabled, of %+v", counted, t)
	}
	if len(w.oracle.meddled) > 0 { // a score that somebody wrote is as untrue as what follows from it
		return
	}
	failIf(int(q.Running) != t.running, "counted %d running, of %+v", q.Running, t)
	failIf(said["due"] != "" && (number("due") != t.due || t.waits <= time.Minute), "said %q, and %d are due for up to %s", said["due"], t.due, t.waits)
	failIf(said["due"] == "" && t.due > 0 && t.waits > time.Minute, "said nothing of %d that are due for up to %s", t.due, t.waits)
	for _, role := range model.Roles {
		silence, known := t.silent[role]
		missing := said[string(role)+"-missing"]
		failIf(missing != "" && known && silence <= model.LongestSilence, "said %q %s after its heartbeat", missing, silence)
		failIf(missing != "" && role == model.RoleWorker && (t.front == 0 || t.held > 0), "said %q while nothing waits, or %d are held", missing, t.held)
	}
	calm := len(said) == 0 && q.Calm() == alerts.None
	failIf(calm && t.stopped() != "", "said %q, and %s may be missing: %+v", q.Calm(), t.stopped(), t)
	failIf(!calm && len(said) == 0 && t.stopped() == "", "said %q, and nobody is missing: %+v", q.Calm(), t)
}

// sayInWorlds lets worlds go on, and compares what is said at some of their instants. It returns the first statement that does not hold.
func sayInWorlds(t *testing.T, planted bug, first uint64, n int) error {
	t.Helper()
	r := newServer(t, planted)
	for seed := first; seed < first+uint64(n); seed++ {
		err := flawOf(func() {
			w := newWorld(r, seed, planted, nil)
			defer w.close()
			instants := rand.New(rand.NewPCG(seed, 0x5a1d)) // others than those of the world
			for range 2 * turbulence {
				if w.step(); instants.IntN(8) == 0 {
					w.checkStatements()
				}
			}
		})
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

func TestEachStatementHoldsAtItsInstant(t *testing.T) {
	if err := sayInWorlds(t, bug{}, 1, long.Or(12, 200)); err != nil {
		t.Fatal(err)
	}
}

func TestAStatementThatDoesNotHoldIsFound(t *testing.T) {
	for set, first := range map[string]uint64{"disabled": 1, "failing": 81, "running": 1} { // few leave the failing ones in a large batch
		if err := sayInWorlds(t, bug{name: set, mark: "group", line: stays(set)}, first, 40); err == nil {
			t.Errorf("expected a false statement where models stay in the set %s, found none", set)
		}
	}
}
