package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// guardedSaves are of models whose successes are doubted by their rows.
var guardedSaves = []string{
	`"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["20s","next"],"guard":[{"rows":{"min":1}}],"on_suspect":"hold"},"refresh":"now"`,
	`"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["20s","next"],"guard":[{"rows":{"drop":"20%","of":3}}],"on_suspect":"hold","fresh_within":"5m","notify":["suspect","stale","fresh"]},"refresh":"now"`,
	`"rrule":"FREQ=MINUTELY","dtstart":"2026-01-01","policy":{"timeout":"1m","retries":["5s"],"on_exhausted":"give_up","guard":[{"rows":{"min":1}},{"rows":{"drop":"20%","of":3}}],"on_suspect":"fail"}`,
	`"rrule":"FREQ=MINUTELY","dtstart":"2026-01-01","policy":{"timeout":"1m","guard":[{"rows":{"drop":"20%","of":3}}],"notify":["suspect"]}`,
	`"policy":{"timeout":"1m","retries":["20s","1m"],"give_up_after":"10m","guard":[{"rows":{"min":1}}],"on_suspect":"hold"},"refresh":"now"`,
}

func guardedCommand(rng *rand.Rand, uid string) string {
	if rng.IntN(3) > 0 {
		return fmt.Sprintf(releases[rng.IntN(len(releases))], uid)
	}
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d},%s}`, uid, rng.IntN(3), guardedSaves[rng.IntN(len(guardedSaves))])
}

// heldSave is of a model that each doubted success holds, and releases are all that ends that.
const heldSave = `{"type":"put","uid":%q,"payload":{"n":1},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"guard":[{"rows":{"min":1}}],"on_suspect":"hold"},"refresh":"now"}`

// usualSave are of two models whose rows are compared with those before. One of them is held, the other counts all the same.
var usualSave = map[string]string{
	"m1": `{"type":"put","uid":%q,"payload":{"n":1},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"guard":[{"rows":{"drop":"20%%","of":3}}],"on_suspect":"hold"},"refresh":"planned"}`,
	"m2": `{"type":"put","uid":%q,"payload":{"n":1},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"guard":[{"rows":{"drop":"20%%","of":3}}]},"refresh":"planned"}`,
}

var releases = []string{
	`{"type":"accept","uid":%q}`, `{"type":"reject","uid":%q}`, `{"type":"run","uid":%q}`, `{"type":"put","uid":%q,"payload":{"n":7},"refresh":"now"}`,
	`{"type":"disable","uid":%q}`, `{"type":"remove","uid":%q}`, `{"type":"accept","uid":%q}`, `{"type":"reject","uid":%q}`, `{"type":"enable","uid":%q}`,
}

// doubt are worlds with guards, drawn separately like the steered ones.
func (t *temper) doubt(rng *rand.Rand, planted bug) {
	elsewhere := planted.name != "" && !planted.doubts
	plain := !t.steers && !t.hands && !t.timed && !t.silent && !t.pools && !t.waits
	if t.doubts = !elsewhere && plain && rng.IntN(2) == 0 || planted.doubts; t.doubts {
		t.jumps = append(t.jumps, 20*time.Second, time.Minute, 2*time.Minute)
		t.maxQueued += 3
	}
}

// rows are the numbers of a success.
func (w *workerRole) rows() []string {
	return w.pick(`"metrics":{"rows":100}`, `"metrics":{"rows":100,"bytes":7}`, `"metrics":{"rows":110}`, `"metrics":{"rows":120}`, `"metrics":{"rows":90}`,
		`"metrics":{"rows":70}`, `"metrics":{"rows":0}`, `"metrics":{"rows":0},"changed":false`, `"metrics":{"bytes":7}`, `"metrics":{"rows":"many"},"changed":true`)
}

// historyCap is how many attempts a history keeps.
const historyCap = 3

// ending is the end of an attempt: its entry of the history, and the rows that it reported.
type ending struct {
	record
	rows      float64
	carried   bool
	unchanged bool
}

func (r ending) good() bool {
	return r.Outcome == model.EventSuccess && (r.Suspect == "" && !r.unchanged || r.Accepted)
}

func recordOf(a *model.Attempt) record {
	return record{a.AttemptUID, a.Reason, a.Worker, a.Why, model.FormatMetrics(a.Metrics), a.Suspect, a.Accepted, a.AttemptNo, a.StartedAt, a.EndedAt, a.DeadlineAt, a.RefreshAt, a.Duration, a.Outcome}
}

func endingOf(entry string) (r ending) {
	a, err := model.ParseAttempt(entry)
	must(err)
	r.record = recordOf(&a)
	r.rows, r.carried = a.Metrics["rows"]
	r.unchanged = unchanged(a.Changed)
	return r
}

func unchanged(changed *bool) bool { return changed != nil && !*changed }

// noteEnd notes an attempt in front of those that ended before, or in the place of the newest.
func (p *replay) noteEnd(uid string, r ending, replaces bool) {
	past := p.pasts[uid]
	if replaces {
		past = past[min(1, len(past)):]
	}
	past = slices.Insert(slices.Clone(past), 0, r)
	p.pasts[uid] = past[:min(historyCap, len(past))]
}

// usualOf is the median of the good results of a history, back to one that was accepted; too few of them change nothing of what was usual.
func (p *replay) usualOf(uid string) (usual float64, known bool) {
	var good []float64
	for _, r := range p.pasts[uid] {
		if r.good() && r.carried {
			good = append(good, r.rows)
		}
		if r.Accepted {
			break
		}
	}
	if len(good) < historyCap {
		usual, known = p.usual[uid]
		return usual, known
	}
	slices.Sort(good)
	return good[historyCap/2], true
}

// expected reports whether rows must not be missing: the last three good results had them, or those before did, where there are fewer.
func (p *replay) expected(uid string) bool {
	good := slices.DeleteFunc(slices.Clone(p.pasts[uid]), func(r ending) bool { return !r.good() })
	if slices.ContainsFunc(good, func(r ending) bool { return !r.carried }) {
		return false
	}
	_, known := p.usual[uid]
	return known || len(good) >= historyCap
}

// learn notes the usual numbers behind a good result, or behind an accepted one: that begins a new level.
func (p *replay) learn(m *model.Model, r ending, decision *model.Decision) {
	if learns := r.good() && len(m.Policy.Guard) > 0; !learns {
		return
	}
	usual, known := p.usualOf(m.UID)
	if r.Accepted {
		usual, known = r.rows, r.carried
	}
	delete(p.usual, m.UID)
	if known {
		p.usual[m.UID] = usual
	}
	failIf(usualRows(decision.Next.Usual) != p.usual[m.UID], "usual is %q, want %v by %+v", decision.Next.Usual, p.usual[m.UID], p.pasts[m.UID])
}

func usualRows(text string) float64 {
	var usual struct{ Rows float64 }
	_ = json.Unmarshal([]byte(text), &usual)
	return usual.Rows
}

// doubted reports whether guards doubt a success by what was reported before, and never by itself.
func (p *replay) doubted(m *model.Model, rows float64, carried bool) bool {
	usual, known := p.usualOf(m.UID)
	if !carried {
		return len(m.Policy.Guard) > 0 && p.expected(m.UID)
	}
	return slices.ContainsFunc(m.Policy.Guard, func(g policy.Guard) bool {
		if g.Rule == policy.GuardMin {
			return rows < g.Bound
		}
		return known && rows < usual*(1-g.Bound/100)
	})
}

// judge checks the fate of a doubted success, and that a held one goes on when somebody says so and not before.
func (p *replay) judge(uid string, m *model.Model, decision model.Decision, at time.Time) {
	held, next := p.held[uid], &decision.Next
	if p.message != nil && p.message.Type == model.MessageSuccess && decision.Event != model.EventOutdated && decision.Event != model.EventLate {
		rows, carried := p.message.Metrics["rows"]
		want := map[bool]model.Event{false: model.EventSuccess}[!unchanged(p.message.Changed) && p.doubted(m, rows, carried)]
		if want == "" {
			want = map[policy.OnSuspect]model.Event{"": model.EventSuccess, policy.SuspectFail: model.EventFailure, policy.SuspectHold: model.EventSuspect}[m.Policy.OnSuspect]
			if want == model.EventSuspect && m.Again { // it runs again anyway
				want = model.EventFailure
			}
			failIf((decision.Ended.Suspect == "") != (want == model.EventFailure), "the doubt is noted as %q", decision.Ended.Suspect)
		} else {
			failIf(decision.Ended.Suspect != "", "a good result is doubted: %s", decision.Ended.Suspect)
		}
		failIf(decision.Event != want, "a success with %v behind %+v, want %s", p.message.Metrics, p.pasts[uid], want)
	}
	if decision.Event == model.EventSuspect {
		p.held[uid] = true
		failIf(!next.Held() || next.AttemptNo != m.AttemptNo-1 || !next.LastSuccessAt.Equal(m.LastSuccessAt) || !next.FailingSince.Equal(m.FailingSince),
			"a doubted success counts: %v", fields(m))
		return
	}
	holds := decision.Event != model.EventRemove && next.Held()
	failIf(holds && !held && decision.Event != model.EventImport, "the model is held, and nothing was doubted")
	if p.held[uid] = holds; !held || holds {
		return
	}
	released := []model.Event{model.EventSuccess, model.EventFailure, model.EventRun, model.EventUpdate, model.EventDisable, model.EventRemove, model.EventImport}
	failIf(!slices.Contains(released, decision.Event), "a held model goes on by itself")
	goes := *m
	if decision.Definition != nil {
		goes = *decision.Definition
	}
	_ = goes.Resolve(goes.Policy, p.schedules.Get) // as it is written
	planned := goes.Planned(at)
	ends := next.Disabled || goes.OneShot() || decision.Event == model.EventRemove || decision.Event == model.EventImport
	failIf(!ends && (next.RefreshAt.IsZero() || next.RefreshAt.After(planned)), "released, the model waits until %q, planned is %s", model.FormatTime(next.RefreshAt), planned)
}

// beUsual lets two models report numbers that are usual or not: too few of them are no measure, nor are doubted ones, however often they come.
func (w *world) beUsual() {
	w.series = map[string][]int{"m1": {100, 100, 10}, "m2": {100, 100, 100, 10, 10, 10}}
	for _, uid := range []string{"m1", "m2"} {
		w.send(w.operator.order(`{"type":"remove","uid":%q}`, uid), w.operator.order(usualSave[uid], uid))
	}
	w.rounds()
	for range w.series["m2"] {
		w.send(w.operator.order(`{"type":"run","uid":%q}`, "m1"), w.operator.order(`{"type":"run","uid":%q}`, "m2"))
		w.rounds()
	}
}

// beDoubted holds each model by a doubted success, lets a day pass, in which nothing starts, and releases it in one way or another.
func (w *world) beDoubted() {
	for _, uid := range w.uids {
		w.series = map[string][]int{uid: {0}}
		w.send(w.operator.order(`{"type":"remove","uid":%q}`, uid), w.operator.order(heldSave, uid))
		w.rounds()
	}
	w.turn(24 * time.Hour)
	w.rounds()
	for i, uid := range w.uids {
		hash := w.before.models[uid]
		failIf(hash["parked_by"] != string(model.BySuspect) || hash["attempt_uid"] != "" || hash["last_success_at"] != "", "%s is not held: %v", uid, hash)
		w.send(w.operator.order(releases[(i+w.attempts)%6], uid))
	}
	w.rounds()
	for _, uid := range w.uids {
		hash, found := w.before.models[uid]
		ends := hash["refresh_disabled_until_update"] != "" || hash["rrule"] == ""
		failIf(found && (hash["parked_by"] != "" || hash["refresh_at"] == "" && !ends), "%s was released, and does not go on: %v", uid, hash)
	}
}

// partial judges a success by another past than there is.
type partial struct {
	fixture.Part
	past func(past []model.Attempt, itself model.Attempt) []model.Attempt
}

func (s partial) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	for i := range batch.Items {
		item := &batch.Items[i]
		message, err := model.Wire{}.DecodeMessage([]byte(item.Message.Raw()))
		if err != nil || message.Type != model.MessageSuccess || item.Transition == nil || item.Message.FromControl() {
			continue
		}
		records, err := s.Load(ctx, []string{item.UID})
		if err != nil {
			return nil, err
		}
		r := records[item.UID]
		pasts, err := s.Report().Histories(ctx, []string{item.UID}, 0)
		if err != nil {
			return nil, err
		}
		r.Past = s.past(pasts[item.UID], model.Attempt{AttemptUID: message.AttemptUID, Outcome: model.EventSuccess, Metrics: message.Metrics})
		if decision, outcome := r.Handle(message, batch.Now); outcome == model.Applied {
			item.Transition = r.Decide(decision, batch.Now)
		}
	}
	return s.Store.Commit(ctx, batch)
}

// guardBugs are bugs of guards. The last one changes both the decision and its comparison: only the promise shows it.
var guardBugs = []bug{
	{name: "a guard looks at the doubted success itself", doubts: true, store: func(s fixture.Part) queue {
		return partial{s, func(past []model.Attempt, itself model.Attempt) []model.Attempt {
			return slices.Insert(past, 0, itself)
		}}
	}},
	{name: "what is doubted is usual", doubts: true, store: func(s fixture.Part) queue {
		return partial{s, func(past []model.Attempt, _ model.Attempt) []model.Attempt {
			for i := range past {
				past[i].Suspect = ""
			}
			return past
		}}
	}},
	{name: "a held model still stands at its blocker behind its release", doubts: true, mark: "step", line: without(does("ZREM", ":parked:"))},
	{name: "a held model that its release forgets", first: 42, doubts: true, believed: func(m *model.Model) {
		if m.Held() {
			m.Schedule = nil
		}
	}},
}
