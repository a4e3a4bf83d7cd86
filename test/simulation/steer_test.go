package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/schedule"
)

// ratedPolicy bounds how many models of a tenant start, and lets a worker ask that none does.
const ratedPolicy = `{"timeout":"30s","retries":["0s"],"limits":[{"key":"{label.tenant}","rate":"6/m"}],"retry_after_scope":"key"}`

// singlePolicy lets one model of a tenant run at a time.
const singlePolicy = `{"timeout":"1m","retries":["0s","1m","next"],"limits":[{"key":"{label.tenant}","running":1}]}`

// triedPolicy stops the models of a tenant when one of them fails, until another has tried.
const triedPolicy = `{"timeout":"1m","retries":["0s","0s","next"],"circuit":{"key":"{label.tenant}","open_after":"1 of 2","probe":"30s"}}`

// tiredPolicy gives a model up that has failed for long.
const tiredPolicy = `{"timeout":"1m","retries":{"strategy":"exponential","base":"5s"},"give_up_after":"5m"}`

// steeredPolicies are those of models that limits, circuits and calendars may stop.
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

// steeredSaves are what else a save of such a model may say.
var steeredSaves = []string{
	`,"refresh":"now"`, `,"refresh":"now"`, ``, `,"rrule":"FREQ=MINUTELY;INTERVAL=2","dtstart":"2026-01-01"`,
	`,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01","refresh":"planned"`,
}

// steeredCommand saves a model with labels, and mostly one policy if that is named.
func steeredCommand(rng *rand.Rand, uid, keyed string) string {
	labels := []string{`{"tenant":"t1"}`, `{"tenant":"t1","kind":"k1"}`, `{"tenant":"t2"}`}
	policies := steeredPolicies
	if keyed != "" {
		labels, policies = labels[:2], append(slices.Repeat([]string{keyed}, 2*len(policies)), policies...)
	}
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d},"labels":%s,"policy":%s%s}`, uid, rng.IntN(3),
		labels[rng.IntN(len(labels))], policies[rng.IntN(len(policies))], steeredSaves[rng.IntN(len(steeredSaves))])
}

// selectors pick what operators steer; those that ask for no status may be those of holds.
var selectors = []string{"", "tenant=t1", "tenant!=t2", "uid=m1", "uid=m*,kind=k1", "status=failing"}

func (o *operatorRole) selector() model.Selector {
	text := selectors[o.rng.IntN(len(selectors))]
	selector, err := model.ParseSelector(text)
	if err != nil {
		panic(err) // one of this file
	}
	return selector
}

// deeds are what operators do mostly, so that it happens more than once within a run.
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
		if err := store.Fleet().PutHold(ctx, &h); err != nil || o.rng.IntN(2) == 0 {
			return err
		}
		return o.cancelHeld(ctx, &h)
	case 2, 3:
		_, err = store.Fleet().ReleaseHold(ctx, hold, time.Duration(o.rng.IntN(2))*20*time.Second, now)
	case 4:
		return store.Fleet().PutLimit(ctx, o.newLimit(key, now), now)
	case 5:
		_, err = store.Fleet().RemoveLimit(ctx, key, now)
	case 6:
		return store.Fleet().PutCalendar(ctx, nightly(1+o.rng.IntN(3)), now)
	case 7:
		_, err = store.Fleet().RemoveCalendar(ctx, calendarName, now)
	case 8:
		return o.steerBulk(ctx)
	default:
		_, err = store.Fleet().CancelBulk(ctx, "b"+strconv.Itoa(1+o.rng.IntN(o.bulks+1)))
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
	if b.Action == model.BulkRun {
		b.Force = o.rng.IntN(4) == 0
	}
	if o.rng.IntN(3) == 0 {
		b.Rate = policy.Rate{Count: 1, Per: 2 * time.Second}
	}
	_, err := o.server.store.Fleet().BeginBulk(ctx, id, b)
	return err
}

// letGo ends all holds and takes away all calendars, as operators do when they go home.
func (w *world) letGo() {
	if !w.temper.steers {
		return
	}
	ctx, store := context.Background(), w.server.store
	for _, id := range holdNames {
		must(only(store.Fleet().ReleaseHold(ctx, id, 0, w.now)))
	}
	must(only(store.Fleet().RemoveCalendar(ctx, calendarName, w.now)))
	w.enter(&deed{now: w.now})
	w.judge()
}
