package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// windowRule opens a retry window for the first five of each ten minutes.
var windowRule = func() string {
	var hours, minutes []string
	for hour := range 24 {
		hours = append(hours, fmt.Sprint(hour))
	}
	for minute := range 60 {
		if minute%10 < 5 {
			minutes = append(minutes, fmt.Sprint(minute))
		}
	}
	return "FREQ=DAILY;BYHOUR=" + strings.Join(hours, ",") + ";BYMINUTE=" + strings.Join(minutes, ",")
}()

// windowOpen reports whether these windows are open.
func windowOpen(at time.Time) bool { return at.Minute()%10 < 5 }

// windowedPolicy lets retries start in such a window alone, whatever else holds them up.
var windowedPolicy = `{"timeout":"30s","retries":["0s","1m","1m","3m"],"give_up_after":"40m","retry_window":"` + windowRule + `","limits":[{"key":"{label.tenant}","running":1,"rate":"2/m"}],"circuit":{"key":"{label.tenant}","open_after":"2 of 3","probe":"30s"}}`

// timedSaves are of models whose next start depends on several times at once: a retry, a planned refresh, the wish of a worker,
// a window, and how late it is.
var timedSaves = []string{
	`"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["25m","2m","next"],"misfire":"skip"}`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["0s","25m"],"alignment":"planned_only","misfire":"run_if_younger_than 3m"}`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["15m","25m"],"alignment":"whichever_first","give_up_after":"1h"}`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["1m","8m"],"alignment":"between_planned","misfire":"skip"}`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=7","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["1m","1m","1m"],"retry_window":"` + windowRule + `"}`,
	`"policy":{"timeout":"1m","retries":["1m","2m","1m","1m"],"give_up_after":"30m","retry_window":"` + windowRule + `"},"refresh":"now"`,
	`"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["2m","1h"],"alignment":"until_success"}`,
}

func timedCommand(rng *rand.Rand, uid string) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d},%s}`, uid, rng.IntN(3), timedSaves[rng.IntN(len(timedSaves))])
}

// timed are worlds of such models, drawn separately like the steered ones.
func (t *temper) time(rng *rand.Rand, planted bug) {
	elsewhere := planted.name != "" && !planted.timed
	if t.timed = !elsewhere && !t.steers && !t.pools && !t.hands && !t.waits && rng.IntN(3) == 0 || planted.timed; t.timed {
		t.jumps = append(t.jumps, time.Minute, time.Minute, 3*time.Minute, 7*time.Minute)
	}
}

// timely checks the times in a decision against the policy as it was written: it uses only that and the wishes of the
// worker. floor is the wish before this decision.
func (p *replay) timely(m *model.Model, decision model.Decision, floor, at time.Time) {
	if m == nil || decision.Definition != nil {
		return
	}
	said, next := p.policy(m.PolicyName), &decision.Next
	switch decision.Event {
	case model.EventStart:
		failIf(next.Trigger == model.TriggerRetry && said.RetryWindow != "" && !windowOpen(at), "a retry starts outside of its window")
		moved := !floor.IsZero() && m.Trigger == model.TriggerPlanned && m.RefreshAt.Equal(floor) && !m.Parked() && m.Schedule != nil
		if late := at.Sub(floor); moved && said.Misfire.Limited && late > said.Misfire.Younger && m.Planned(at.Add(-said.Misfire.Younger-time.Millisecond)).After(at) {
			fail("a planned refresh that its worker has moved starts %s late: it is to be skipped", late)
		}
	case model.EventFailure:
		p.moves(m, &said, decision, p.asked(at), at)
	case model.EventSkipped, model.EventReleased, model.EventLimited:
		p.rejoins(m, &said, next, at)
	}
}

// rejoins checks that a retry which waits for its window again leaves no planned refresh out that comes before, unless the alignment lets it win.
func (p *replay) rejoins(m *model.Model, said *policy.Policy, next *model.State, at time.Time) {
	if m.Schedule == nil || said.RetryWindow == "" || said.Alignment == policy.UntilSuccess || next.Trigger != model.TriggerRetry || windowOpen(at) {
		return
	}
	planned, found := m.Schedule.Next(at)
	failIf(found && next.Reserved == "" && planned.Before(next.RefreshAt), "the planned refresh of %s is dropped: a retry waits until %s for its window", planned, next.RefreshAt)
}

// moves checks that a planned refresh that comes before the floor of a worker moves there and is not dropped: nothing later follows, but a
// retry where the alignment lets it win.
func (p *replay) moves(m *model.Model, said *policy.Policy, decision model.Decision, floor, at time.Time) {
	next := &decision.Next
	if m.Schedule == nil || !floor.After(at) || next.Disabled || next.Urgent() || decision.Held {
		return
	}
	planned, found := m.Schedule.Next(at)
	retries := said.Alignment == policy.UntilSuccess && next.Trigger == model.TriggerRetry
	if !found || planned.After(floor) || retries || next.RefreshAt.Equal(floor) || next.Trigger == model.TriggerGiveUp && next.RefreshAt.Before(floor) {
		return
	}
	fail("the planned refresh of %s, which its worker has moved to %s, is dropped: the model starts at %s", planned, floor, next.RefreshAt)
}

// timedBugs are bugs of package model itself: both the decisions of the daemons and their comparison have them. So only
// the promises show them.
var timedBugs = []bug{
	{name: "a retry forgets its window when it is held up", first: 304, timed: true, believed: func(r *model.Model) {
		if r.Due(r.RefreshAt) || r.Parked() { // it waits: the window is heeded when it begins to
			r.Window = nil
		}
	}},
	{name: "a retry that is held past its window drops planned refreshes", first: 3292, timed: true, believed: func(r *model.Model) {
		if r.Waiting() && r.Trigger == model.TriggerRetry {
			r.Policy.Alignment = policy.UntilSuccess
		}
	}},
	{name: "a retry forgets its window behind a limit or a circuit", first: 1256, steers: true, keyed: windowedPolicy, believed: func(r *model.Model) {
		if r.Waiting() {
			r.Window = nil
		}
	}},
	{name: "a planned refresh that its worker has moved is dropped", first: 89, timed: true, believed: func(r *model.Model) {
		if r.Running() { // what the alignment says of a planned refresh is not asked, and the retry stays
			r.Policy.Alignment = policy.UntilSuccess
		}
	}},
	{name: "an outdated attempt that is postponed or interrupted delays the new payload", first: 24, timed: true, store: hearsay(delaysOutdated)},
}

// sharedPolicy is stored under a name in some worlds: its rule changes now and then.
const sharedPolicy = "shared"

// shared is that policy with its nth rule. No two of them that follow each other are alike.
func shared(n int) policy.Policy {
	p := policy.Default()
	p.Name, p.Timeout, p.Retries = sharedPolicy, time.Minute, policy.Delays{time.Minute, policy.UntilPlanned}
	p.Rule = fmt.Sprintf("FREQ=%s;BYSECOND=%d", []string{"YEARLY", "MINUTELY", "HOURLY", "DAILY"}[n%4], n%60)
	return p
}

var sharingCommands = []string{
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared","refresh":"now"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":"shared","refresh":"planned"}`,
}

// beginBulk does what `refreshd model run -l` does.
func (o *operatorRole) beginBulk(ctx context.Context) error {
	texts := []string{"", "policy=" + sharedPolicy, "status=failing", "status!=running", "uid=m?"}
	selector, err := model.ParseSelector(texts[o.rng.IntN(len(texts))])
	if err != nil {
		return err
	}
	rate, err := policy.ReadRate([]string{"", "", "2/s", "6/m"}[o.rng.IntN(4)])
	if err != nil {
		return err
	}
	o.runs++
	id := fmt.Sprint("run-", o.runs)
	_, err = flow.Of(o.server.store).BeginBulk(ctx, id, model.Bulk{Action: model.BulkRun, Selector: selector, Rate: rate, By: id})
	return err
}

// replan is a walk's decision about a model.
func (p *replay) replan(m *model.Model, at time.Time) model.Decision {
	failIf(m == nil, "the model does not exist")
	decision, outcome := m.Replan(at)
	failIf(outcome != model.Applied, "it is planned as its policy says")
	return decision
}

// noteRule begins to wait for a walk where the shared policy has changed, and leaves out what was decided since.
func (p *replay) noteRule() {
	if p.before.policies[sharedPolicy] != p.after.policies[sharedPolicy] {
		p.oracle.waiting = map[string]bool{}
		for uid := range p.after.models {
			p.oracle.waiting[uid] = true
		}
	}
	for _, entry := range p.after.journal {
		delete(p.oracle.waiting, entry["uid"])
	}
}

// checkWalk checks that a change is noted for a walk in the same step, and that a walk that is over has forgotten no model.
func (p *replay) checkWalk() {
	was, is := p.before.replanning, p.after.replanning
	switch {
	case p.before.policies[sharedPolicy] != p.after.policies[sharedPolicy] && !is:
		fail("the shared policy has changed, and nobody will walk for it")
	case !was || is:
		return
	}
	for uid := range p.oracle.waiting {
		hash, found := p.after.models[uid]
		if !found || hash["policy"] != sharedPolicy {
			continue
		}
		m := parse(uid, hash, p.after.payloads[uid])
		must(m.Resolve(p.compiled(p.after.policies[sharedPolicy]), p.schedules.Get))
		decision, outcome := m.Replan(p.now)
		failIf(outcome == model.Applied, "the walk is over, and %s still waits for %v instead of %v", uid, m.RefreshAt, decision.Next.RefreshAt)
	}
}
