package alerts

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
)

var (
	equal  = check.Equal
	failIf = check.FailIf
)

var (
	now    = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	before = now.Add(-2 * time.Hour)
)

func hold(t *testing.T, id, selector string, until time.Time, parked int64) flow.HoldStatus {
	t.Helper()
	picks := check.Got(model.ParseSelector(selector))(t)
	return flow.HoldStatus{Hold: model.Hold{ID: id, Selector: picks, Since: before, Until: until, By: "ann", Reason: "deploy"}, Parked: parked}
}

func circuit(key, by string, parked int64) flow.KeyCircuit {
	return flow.KeyCircuit{Key: key, CircuitState: model.CircuitState{OpenedAt: before}, By: by, Parked: parked}
}

// situations are queues in which one thing is stopped or wrong.
func situations(t *testing.T) map[string]Queue {
	gone := func(parts int, parties ...model.Role) (all []Missing) {
		for _, party := range parties {
			all = append(all, Missing{model.Missing{Role: party, Certain: true}, parts})
		}
		return all
	}
	stats := func(change func(*report.Stats)) Queue {
		q := Queue{Parts: 1}
		q.At = now
		change(&q.Stats)
		return q
	}
	with := func(q Queue) Queue {
		q.At, q.Parts = now, max(1, q.Parts)
		return q
	}
	return map[string]Queue{
		"":                      with(Queue{}),
		"due just now":          stats(func(g *report.Stats) { g.Due, g.OldestDue = 4, now.Add(-time.Minute) }),
		"nothing due any more":  stats(func(g *report.Stats) { g.Due = 1 }), // it was started in between
		"a hold that has ended": with(Queue{Holds: []flow.HoldStatus{hold(t, "h1", "", now, 3)}}),
		"all models are held":   with(Queue{Holds: []flow.HoldStatus{hold(t, "h1", "", time.Time{}, 1)}}),
		"a tenant is held":      with(Queue{Holds: []flow.HoldStatus{hold(t, "h2", "tenant=t1", now.Add(time.Hour), 40)}}),
		"a circuit is open":     with(Queue{Circuits: []flow.KeyCircuit{circuit("host=a.example", "bob", 0)}}),
		"that of the queue":     with(Queue{Circuits: []flow.KeyCircuit{circuit(model.QueueCircuitKey, "", 0)}}),
		"no dispatcher":         with(Queue{Missing: gone(1, model.RoleDispatcher)}),
		"no worker, no poller":  with(Queue{Missing: gone(1, model.RoleWorker, model.RolePoller)}),
		"a part without poller": with(Queue{Parts: 4, Missing: gone(2, model.RolePoller)}),
		"other zone data":       with(Queue{Zones: []string{"daemons with zone data of 2025b of /usr/share/zoneinfo and 2026f of refreshd, which differ for America/Havana from 2026-11-01"}}),
		"due for long":          stats(func(g *report.Stats) { g.Due, g.OldestDue = 1, before }),
		"disabled":              stats(func(g *report.Stats) { g.Disabled = 400 }),
		"never tried":           stats(func(g *report.Stats) { g.Freshness = report.FreshnessCounts{model.FreshnessNever: 7} }),
		"never succeeded": stats(func(g *report.Stats) {
			g.Failing = 1
			g.Freshness = report.FreshnessCounts{model.FreshnessNever: 7, model.Fresh: 3}
		}),
		"parked by a calendar":   stats(func(g *report.Stats) { g.ParkedBy = map[string]int64{model.BlockerCalendar: 12, model.BlockerHold: 3} }),
		"parked by a limit":      stats(func(g *report.Stats) { g.ParkedBy = map[string]int64{model.BlockerLimit: 1, model.BlockerCircuit: 3} }),
		"results are doubted":    stats(func(g *report.Stats) { g.ParkedBy = map[string]int64{model.BlockerSuspect: 2} }),
		"the most important one": with(Queue{Missing: gone(1, model.RoleDispatcher), Holds: []flow.HoldStatus{hold(t, "h1", "", time.Time{}, 0)}, Stats: report.Stats{Disabled: 1}}),
	}
}

func TestEachThingThatIsStoppedIsASentence(t *testing.T) {
	want := map[string][]string{
		"": nil, "due just now": nil, "nothing due any more": nil, "a hold that has ended": nil, "never tried": nil,
		"all models are held":    {`all-held: All models are held by ann since 2026-11-21 05:00:00 UTC (hold h1). Reason: "deploy". 1 model waits for it.`},
		"a tenant is held":       {`held: Models are held by ann since 2026-11-21 05:00:00 UTC until 2026-11-21 08:00:00 UTC (hold h2). Reason: "deploy". 40 models wait for it.`},
		"a circuit is open":      {"circuit-open: The circuit of host=a.example is open. It was opened by bob at 2026-11-21 05:00:00 UTC. 0 models wait for it."},
		"that of the queue":      {"queue-circuit-open: The circuit of the whole queue is open, so no failure disables a model. It opened at 2026-11-21 05:00:00 UTC. 0 models wait for it."},
		"no dispatcher":          {"dispatcher-missing: No dispatcher is running."},
		"no worker, no poller":   {"worker-missing: Attempts wait, and no worker takes any.", "poller-missing: No poller is running."},
		"a part without poller":  {"poller-missing: No poller is running, in 2 of 4 parts."},
		"other zone data":        {"zone-data: There are daemons with zone data of 2025b of /usr/share/zoneinfo and 2026f of refreshd, which differ for America/Havana from 2026-11-01."},
		"due for long":           {"due: 1 model is due, since 2026-11-21 05:00:00 UTC at the longest."},
		"disabled":               {"disabled: 400 models are disabled."},
		"never succeeded":        {"never: 7 models have never succeeded yet."},
		"parked by a calendar":   {"parked-calendar: 12 models wait for calendars."},
		"parked by a limit":      {"parked-limit: 1 model waits for limits."},
		"results are doubted":    {"parked-suspect: 2 results wait for a verdict."},
		"the most important one": {"dispatcher-missing: No dispatcher is running.", `all-held: All models are held by ann since 2026-11-21 05:00:00 UTC (hold h1). Reason: "deploy". 0 models wait for it.`, "disabled: 1 model is disabled."},
	}
	for name, queue := range situations(t) {
		var got []string
		for _, one := range queue.Findings() {
			got = append(got, one.Code+": "+one.Text)
		}
		diff := cmp.Diff(want[name], got)
		failIf(t, diff != "", "%s: -want +got\n%s", name, diff)
	}
}

func TestThatNothingIsStoppedIsSaidWhereItIsKnown(t *testing.T) {
	for want, doubtful := range map[string][]model.Role{
		"Nothing is stopped.": nil,
		"It is not known whether anything is stopped: attempts wait, and no worker has taken any of late.":                                         {model.RoleWorker},
		"It is not known whether anything is stopped: messages wait, and no poller has given a sign of life of late.":                              {model.RolePoller, model.RoleWorker},
		"It is not known whether anything is stopped: models are due or attempts out of time, and no dispatcher has given a sign of life of late.": {model.RoleDispatcher},
	} {
		q := Queue{Doubtful: doubtful}
		failIf(t, q.Calm() != want, "%v: want %q, found %q", doubtful, want, q.Calm())
	}
}

func TestManyHoldsAndCircuitsAreSummedUpAndNothingThatStopsAllIsHidden(t *testing.T) {
	q := Queue{Parts: 1}
	q.At = now
	for range 8 {
		q.Holds = append(q.Holds, hold(t, "h", "tenant=t1", time.Time{}, 1))
		q.Circuits = append(q.Circuits, circuit("host=a", "", 1))
	}
	q.Holds = append(q.Holds, hold(t, "last", "", time.Time{}, 1))
	q.Circuits = append(q.Circuits, circuit(model.QueueCircuitKey, "", 0))
	codes := map[string]int{}
	text := ""
	for _, one := range q.Findings() {
		codes[one.Code]++
		text += one.Text + "\n"
	}
	equal(t, map[string]int{"held": 6, "all-held": 1, "circuit-open": 6, "queue-circuit-open": 1}, codes)
	for _, more := range []string{"3 more holds keep", "3 more circuits are open"} {
		failIf(t, !strings.Contains(text, more), "expected %q, found %s", more, text)
	}
}

// The runbook is entered by what is seen: each code of a finding begins a row of it.
func TestTheRunbookHasARowForEachFinding(t *testing.T) {
	runbook := check.Got(os.ReadFile("../../docs/operations.md"))(t)
	for name, queue := range situations(t) {
		for _, one := range queue.Findings() {
			failIf(t, !strings.Contains(string(runbook), "\n| `"+one.Code+"` "),
				"%s: expected a row of the runbook that begins with `%s`, found none", name, one.Code)
			failIf(t, one.Do == "" || len(strings.Fields(one.Do)) > 15, "%s: expected what to do next in at most 15 words, found %q", name, one.Do)
			failIf(t, one.Command == "", "%s: expected a command that shows more, found none", name)
		}
	}
}

func TestAFindingNamesTheCommandAndThePageThatShowMoreOfIt(t *testing.T) {
	q := Queue{Parts: 1, Holds: []flow.HoldStatus{hold(t, "h1", "", time.Time{}, 1)}, Circuits: []flow.KeyCircuit{circuit("host=a", "", 0), circuit(model.QueueCircuitKey, "", 0)}}
	q.At, q.Due, q.OldestDue, q.Disabled = now, 1, before, 1
	q.ParkedBy = map[string]int64{model.BlockerSuspect: 1, model.BlockerLimit: 1}
	var got []string
	for _, one := range q.Findings() {
		got = append(got, strings.Join(append([]string{one.Code, one.Command, one.Page}, one.Fields...), ", "))
	}
	equal(t, []string{
		"all-held, refreshd hold ls, steering",
		"circuit-open, refreshd circuit ls, steering, key, host=a",
		"queue-circuit-open, refreshd circuit show queue, steering, key, queue",
		"due, refreshd model ls --sort due, models, sort, due",
		"parked-limit, refreshd model ls -l status=parked, models, l, status=parked",
		"parked-suspect, refreshd suspect ls, models, l, status=parked",
		"disabled, refreshd model ls -l status=disabled, models, l, status=disabled",
	}, got)
}

func TestHoldsAreSummedUpFromTheSixthOn(t *testing.T) {
	for n, want := range map[int]string{mostOfAKind: "Models are held", mostOfAKind + 1: "1 more hold keeps", mostOfAKind + 2: "2 more holds keep"} {
		q := Queue{Parts: 1}
		q.At = now
		for range n {
			q.Holds = append(q.Holds, hold(t, "h", "tenant=t1", time.Time{}, 1))
		}
		found := q.Findings()
		last := found[len(found)-1]
		failIf(t, len(found) != min(n, mostOfAKind+1) || !strings.HasPrefix(last.Text, want), "%d holds: %d findings, the last %q, want %q", n, len(found), last.Text, want)
	}
}

func TestModelsAreDueForLongAfterAMinuteAndOnlyWhileThereAreAny(t *testing.T) {
	for _, test := range []struct {
		due   int64
		since time.Duration
		want  bool
	}{{1, lateness, false}, {1, lateness + 1, true}, {0, time.Hour, false}} {
		q := Queue{Parts: 1}
		q.At, q.Due, q.OldestDue = now, test.due, now.Add(-test.since)
		failIf(t, (len(q.Findings()) > 0) != test.want, "%d due since %s: %v", test.due, test.since, q.Findings())
	}
}
