package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
	"github.com/refreshd/refreshd/model/zones"
)

// ratedPolicy bounds how many models of a tenant start, and lets a worker ask that none does.
const ratedPolicy = `{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","rate":"6/m"}],"retry_after_scope":"key"}`

// singlePolicy lets one model of a tenant run at a time.
const singlePolicy = `{"timeout":"1m","retries":["0s","1m","next"],"limits":[{"key":"{label.tenant}","running":1}]}`

// triedPolicy stops the models of a tenant when one of them fails, until another has tried.
const triedPolicy = `{"timeout":"1m","retries":["0s","0s","next"],"circuit":{"key":"{label.tenant}","open_after":"1 of 2","probe":"30s"}}`

// tiredPolicy gives a model up that has failed for long.
const tiredPolicy = `{"timeout":"1m","retries":{"strategy":"exponential","base":"5s"},"give_up_after":"5m"}`

// steeredPolicies are policies of models that limits, circuits and calendars may stop.
var steeredPolicies = []string{
	singlePolicy,
	`{"timeout":"1m","retries":["0s","1m","next"],"limits":[{"key":"{label.tenant}","running":2},{"key":"{n}","running":1}]}`,
	ratedPolicy,
	`{"timeout":"1m","retries":["0s","1m"],"limits":[{"key":"{n}","rate":"20/m","running":2}],"give_up_after":"10m"}`,
	triedPolicy,
	`{"timeout":"1m","retries":["0s","0s"],"limits":[{"key":"{n}","running":1}],"circuit":{"key":"{label.tenant}","open_after":"2 of 3","probe":"5s"}}`,
	`{"timeout":"1m","retries":["0s","0s","next"],"circuit":{"key":"{n}","open_after":"1 of 1","probe":"1s"}}`,
	`{"timeout":"1m","retries":["0s","1m","next"],"closed":["c1"],"give_up_after":"10m"}`,
	tiredPolicy,
}

// steeredSaves are the other possible parts of a save of such a model.
var steeredSaves = []string{
	`,"refresh":"now"`, `,"refresh":"now"`, ``, `,"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01"`,
	`,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01","refresh":"planned"`,
}

// steeredCommand saves a model with labels, and mostly one policy if that is named.
func steeredCommand(rng *rand.Rand, uid, keyed string) string {
	labels := []string{`{"tenant":"t1"}`, `{"tenant":"t1","kind":"k1"}`, `{"tenant":"t2","host":"own"}`}
	policies := steeredPolicies
	if keyed != "" {
		labels, policies = labels[:2], append(slices.Repeat([]string{keyed}, 2*len(policies)), policies...)
	}
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d,"input_url":"https://H%[2]d.example:8443/f"},"labels":%[3]s,"policy":%s%s}`, uid, rng.IntN(3),
		labels[rng.IntN(len(labels))], policies[rng.IntN(len(policies))], steeredSaves[rng.IntN(len(steeredSaves))])
}

// selectors pick the models for operators' actions; holds may use those that ask for no status.
var selectors = []string{"", "tenant=t1", "tenant!=t2", "uid=m1", "uid=m*,host=h1.example|own", "status=failing"}

func (o *operatorRole) selector() model.Selector {
	text := selectors[o.rng.IntN(len(selectors))]
	selector, err := model.ParseSelector(text)
	if err != nil {
		panic(err) // one of this file
	}
	return selector
}

// deeds are the usual deeds of operators, so that they happen more than once within a run.
type deeds string

const (
	holding deeds = "hold and release"
	walking deeds = "begin bulks"
	sending deeds = "push commands that hold and release"
)

// deed draws one of the ten of steer.
func (d deeds) deed(rng *rand.Rand) int {
	n := rng.IntN(10)
	switch {
	case (d == holding || d == sending) && n > 1:
		return n % 4
	case d == walking && n > 1:
		return 8
	}
	return n
}

// steer does what `refreshd hold`, `release`, `limit`, `calendar` and `bulk` do.
func (o *operatorRole) steer(ctx context.Context) error {
	store := o.server.store
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	hold, key := holdNames[o.rng.IntN(len(holdNames))], keyNames[o.rng.IntN(len(keyNames))]
	deed := o.temper.deeds.deed(o.rng)
	if deed < 4 && (o.temper.deeds == sending || o.rng.IntN(4) == 0) {
		return o.send(ctx, deed < 2, hold)
	}
	switch deed {
	case 0, 1:
		h := model.Hold{ID: hold, Selector: o.selector(), Since: now, Within: time.Duration(o.rng.IntN(2)) * 20 * time.Second}
		if length := o.rng.IntN(4); length > 0 {
			h.Until = now.Add(time.Duration(length*length) * 10 * time.Second)
		}
		if err := flow.Of(store).PutHold(ctx, &h); err != nil || o.rng.IntN(2) == 0 {
			return err
		}
		return o.cancelHeld(ctx, &h)
	case 2, 3:
		_, err = flow.Of(store).ReleaseHold(ctx, hold, time.Duration(o.rng.IntN(2))*20*time.Second, now)
	case 4:
		return flow.Of(store).PutLimit(ctx, o.newLimit(key, now), now)
	case 5:
		_, err = flow.Of(store).RemoveLimit(ctx, key, now)
	case 6:
		return flow.Of(store).PutCalendar(ctx, nightly(1+o.rng.IntN(3)), now)
	case 7:
		_, err = flow.Of(store).RemoveCalendar(ctx, calendarName, now)
	case 8:
		return o.steerBulk(ctx)
	default:
		_, err = flow.Of(store).CancelBulk(ctx, "b"+strconv.Itoa(1+o.rng.IntN(o.bulks+1)))
	}
	return err
}

// send pushes a command that holds or releases. Who does not know whether it has arrived does without.
func (o *operatorRole) send(ctx context.Context, holds bool, id string) error {
	text := fmt.Sprintf(`{"type":"release","id":%q}`, id)
	if holds {
		text = fmt.Sprintf(`{"type":"hold","id":%q,"selector":%q,"reason":"r%d"}`, id, o.selector(), o.rng.IntN(3))
	}
	return o.server.write.RPush(ctx, o.server.store.Keys.Control, text).Err()
}

// newLimit is one for a key, or for all tenants.
func (o *operatorRole) newLimit(key string, now time.Time) *model.Limit {
	l := model.Limit{Name: key, Running: o.rng.IntN(3), Since: now}
	if o.rng.IntN(3) == 0 {
		l.Name = "{label.tenant}"
	} else if o.rng.IntN(2) == 0 {
		l.Until = now.Add(time.Minute)
	}
	if l.Running == 0 {
		l.Rate = policy.Rate{Count: 12, Per: time.Minute}
	}
	return &l
}

// nightly is a calendar that is closed for some minutes of each ten.
func nightly(minutes int) schedule.Calendar {
	calendar, err := schedule.ParseCalendar(map[string]any{
		"name": calendarName, "rrule": "FREQ=MINUTELY;INTERVAL=10", "dtstart": "2026-01-01", "for": strconv.Itoa(minutes) + "m",
	})
	if err != nil {
		panic(err) // one of this file
	}
	return calendar
}

func (o *operatorRole) steerBulk(ctx context.Context) error {
	o.bulks++
	id := "b" + strconv.Itoa(o.bulks)
	actions := []model.BulkAction{model.BulkRun, model.BulkRun, model.BulkRun, model.BulkEnable, model.BulkDisable}
	b := model.Bulk{Action: actions[o.rng.IntN(len(actions))], Selector: o.selector(), By: id}
	if o.bulks%3 == 0 { // it changes nothing, and nobody is notified
		b.Action, b.By = model.BulkReplan, ""
	}
	if b.Action == model.BulkRun {
		b.Force = o.rng.IntN(4) == 0
	}
	if o.rng.IntN(3) == 0 {
		b.Rate = policy.Rate{Count: 1, Per: 2 * time.Second}
	}
	_, err := flow.Of(o.server.store).BeginBulk(ctx, id, b)
	return err
}

// letGo ends all holds and takes away all calendars, as operators do when they go home.
func (w *world) letGo() {
	if !w.temper.steers {
		return
	}
	ctx, store := context.Background(), w.server.store
	for _, id := range holdNames {
		must(only(flow.Of(store).ReleaseHold(ctx, id, 0, w.now)))
	}
	must(only(flow.Of(store).RemoveCalendar(ctx, calendarName, w.now)))
	w.enter(&deed{now: w.now})
	w.judge()
}

// wish is a bulk, and what has come of it.
type wish struct {
	model.Bulk
	started map[string]bool   // models with an attempt started since it began
	running map[string]string // attempts that it is to take back, by model
	applied int               // entries of the journal that it has brought about
	changed map[string]bool   // models that these are about
	doubted int               // models that a step was about to change which nobody has ended, and that others have changed since
}

// wished finds the bulk that an entry carries out; false: none.
func (p *replay) wished(m *model.Model, event model.Event, entry map[string]string) (decision model.Decision, id string, found bool) {
	if m == nil {
		return decision, "", false
	}
	for _, id := range slices.Sorted(maps.Keys(p.oracle.wishes)) {
		w, at := p.oracle.wishes[id], instant(entry["at"])
		if w.By != entry["by"] {
			continue
		}
		w.Zones = zones.ReadNotes(p.before.zones)
		decision, outcome, picked := w.Decide(m, m.Status(at, false), at)
		if picked && outcome == model.Applied && says(decision, event, entry) {
			return decision, id, true
		}
	}
	return decision, "", false
}

// noteWishes notes bulks that have begun, and what was started since.
func (o *oracle) noteWishes(p *replay) {
	for id, w := range o.wishes {
		w.applied += p.granted[id]
		maps.Copy(w.started, p.begun)
		for _, entry := range p.after.journal {
			if entry["event"] == string(model.EventUpdate) {
				delete(w.running, entry["uid"]) // it may have other labels
			}
			if entry["by"] == w.By {
				w.changed[entry["uid"]] = true
			}
		}
		was, is := p.before.bulks[id], p.after.bulks[id]
		for _, uid := range slices.Compact(slices.Sorted(strings.FieldsSeq(was["trying"]))) {
			if was["step"] != is["step"] && !w.changed[uid] && !slices.Contains(strings.Fields(is["trying"]), uid) {
				w.doubted++
			}
		}
		o.wishes[id] = w
	}
	for id, hash := range p.after.bulks {
		if _, known := o.wishes[id]; !known {
			w := wish{Bulk: model.Bulk{
				Action: model.BulkAction(hash["action"]), Force: hash["force"] != "", Reason: hash["reason"], By: hash["by"],
				Since: instant(hash["since"]), Ticket: count(hash["ticket"]),
			}, started: map[string]bool{}, changed: map[string]bool{}}
			w.Selector, _ = model.ParseSelector(hash["selector"])
			w.noteRunning(p.after)
			o.wishes[id] = w
		}
	}
}

// checkWishes checks that each bulk has counted all models that it has picked, and changed those that it says.
func (o *oracle) checkWishes(before, s *snapshot) {
	for _, id := range slices.Sorted(maps.Keys(s.bulks)) {
		hash, was := s.bulks[id], before.bulks[id]
		if steps := count(hash["step"]) - count(was["step"]); fmt.Sprint(hash) != fmt.Sprint(was) && hash["since"] == was["since"] && steps != 1 {
			fail("the bulk %s is moved by %d steps from %v to %v", id, steps, was, hash)
		}
		o.checkTakenBack(id, was, hash)
		picked, done := count(cmp.Or(hash["picked"], "0")), count(cmp.Or(hash["done"], "0"))
		others := 0
		for name, value := range hash {
			if strings.HasPrefix(name, "refused:") || name == "unchanged" || name == "already" {
				others += count(value)
			}
		}
		failIf(picked != done+others || done > o.wishes[id].applied+o.wishes[id].doubted && o.wishes[id].By != "",
			"the bulk %s counts %d picked, %d done and %d others, and has changed %d: %v", id, picked, done, others, o.wishes[id].applied, hash)
	}
}

// checkOver checks that every bulk is over, and no model waits for a blocker.
func (s *snapshot) checkOver() {
	failIf(len(s.openBulks)+len(s.parked) > 0, "left are the bulks %v and the parked %v: blockers %v", s.openBulks, s.parkedBy, s.blockers)
	for id, hash := range s.bulks {
		failIf(hash["ended"] == "", "the bulk %s is not over, and nobody knows of it: %v", id, hash)
	}
	for name, state := range s.circuits {
		failIf(state["probe"] != "", "the circuit of %s is tried for ever: %v", name, state)
	}
}

// cancelHeld does what `refreshd hold --cancel` does when the hold has begun: it takes back what runs of the models that the hold picks.
func (o *operatorRole) cancelHeld(ctx context.Context, hold *model.Hold) error {
	runs := model.SelectStatus + "=" + string(model.StatusRunning)
	selector, err := model.ParseSelector(strings.Trim(hold.Selector.String()+","+runs, ","))
	if err != nil {
		return err
	}
	o.bulks++
	id := "b" + strconv.Itoa(o.bulks)
	_, err = flow.Of(o.server.store).BeginBulk(ctx, id, model.Bulk{Action: model.BulkCancel, Selector: selector, By: id, Since: hold.Since})
	return err
}

// noteRunning notes the attempts that a bulk is to take back which begins: those that were started before.
func (w *wish) noteRunning(s *snapshot) {
	if w.Action != model.BulkCancel {
		return
	}
	w.running = map[string]string{}
	for uid, hash := range s.models {
		m := parse(uid, hash, "")
		if m.Running() && m.Ticket <= w.Ticket && w.Selector.Matches(m, model.StatusProcessing) {
			w.running[uid] = m.AttemptUID
		}
	}
}

// checkCancelled checks that an attempt which was taken back as a hold began counts for nothing.
func (p *replay) checkCancelled(m *model.Model, decision model.Decision) {
	if decision.Event != model.EventCancel {
		return
	}
	was, is := m.State, decision.Next
	switch {
	case is.AttemptNo != max(0, was.AttemptNo-1):
		fail("a cancelled attempt counts: it was number %d, the next is behind %d", was.AttemptNo, is.AttemptNo)
	case is.FingerprintID != was.FingerprintID || !is.FailingSince.Equal(was.FailingSince) || is.Disabled || is.TotalRetries != was.TotalRetries:
		fail("a cancelled attempt counts as a failure: %+v", is)
	}
}

// checkTakenBack checks that a bulk that is over has taken back whatever ran when it began, and ran on.
func (o *oracle) checkTakenBack(id string, was, is map[string]string) {
	if was["ended"] != "" || is["ended"] != "done" {
		return
	}
	for uid, attemptUID := range o.wishes[id].running {
		facts := o.attempts[attemptUID]
		failIf(facts.ended == "", "the bulk %s is over, and the attempt %s of %s runs on: %v", id, attemptUID, uid, is)
	}
}

// checkLateResults checks that what comes of an attempt which was superseded is stale.
func (p *replay) checkLateResults() {
	late := 0
	for _, claimed := range p.consumed {
		message, err := model.Wire{}.DecodeMessage([]byte(claimed[1:]))
		if claimed[0] != 'o' || err != nil || message.Type == "" {
			continue
		}
		facts, was, is := p.oracle.attempts[message.AttemptUID], p.before.models[message.UID], p.after.models[message.UID]
		lives := was != nil && is != nil && !p.forgotten[message.UID]
		if facts != nil && facts.model == message.UID && superseded[facts.ended] && lives && was["last_attempt_uid"] != message.AttemptUID {
			late++
		}
	}
	stale := p.after.grown(p.before, "stale")
	failIf(stale < late, "%d results of attempts that were taken back are not counted as stale, but %d: %q", late, stale, p.consumed)
}

// superseded are the events that take the fence from an attempt which nobody has answered.
var superseded = map[model.Event]bool{model.EventCancel: true, model.EventDisable: true, model.EventRun: true}
