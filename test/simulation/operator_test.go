package simulation

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// operatorRole is an application that pushes commands, and a person who carries them out at the command line.
type operatorRole struct {
	*world
	spare   int // commands that are still to be thought of
	orders  []model.Command
	errands []errand  // of the scenes
	brought []luggage // what it wants to import, or has
	unsent  string    // a command whose arrival is unknown: an application sends it again
}

func (o *operatorRole) round(ctx context.Context) error {
	if len(o.errands) > 0 {
		errand := o.errands[0]
		o.errands = o.errands[1:]
		return errand(ctx)
	}
	if o.unsent == "" && o.spare == 0 {
		return nil
	}
	if o.unsent == "" {
		o.spare--
		if o.temper.rules && o.rng.IntN(3) == 0 {
			if o.rng.IntN(2) == 0 {
				return o.beginBulk(ctx)
			}
			o.rules++ // as `refreshd policy put` does
			return o.server.store.Fleet().PutPolicy(ctx, shared(o.rules))
		}
		if o.temper.steers && o.rng.IntN(3) == 0 {
			return o.steer(ctx)
		}
		if o.temper.queueCircuit != nil && o.rng.IntN(4) == 0 {
			return o.turn(ctx)
		}
		if o.temper.moves && o.rng.IntN(2) == 0 {
			return o.move(ctx)
		}
		text := o.think()
		if o.temper.ages {
			text = ageing(o.rng, text)
		}
		if o.rng.IntN(3) == 0 {
			return o.carryOut(ctx, text)
		}
		if o.unsent = text; o.rng.IntN(2) == 0 {
			o.named++
			o.unsent = fmt.Sprintf(`%s,"command_id":"c%d","reply_to":%q,"by":"ann"}`, strings.TrimSuffix(text, "}"), o.named, o.server.store.Keys.Reply(replyName))
		}
	}
	if err := o.server.write.RPush(ctx, o.server.store.Keys.Control, o.unsent).Err(); err != nil {
		if o.rng.IntN(2) == 0 {
			o.unsent = "" // given up
		}
		return err
	}
	if idOf("c"+o.unsent) == "" || o.rng.IntN(3) > 0 { // otherwise it is in doubt all the same
		o.unsent = ""
	}
	return nil
}

func (*operatorRole) resign(context.Context) {}

var commands = []string{
	`{"type":"put","uid":%q,"payload":{"n":%d}}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":{"timeout":"1m","retries":["0s","1m","next"]}}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","policy":{"timeout":"5m","retries":["1m","5m"],"on_exhausted":"give_up"}}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"2m","queue_timeout":"1m","misfire":"skip"}}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":{"timeout":"1m","retries":{"strategy":"exponential","base":"1m"},"give_up_after":"30m"},"refresh":"now"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":{"timeout":"30s","retries":[],"on_exhausted":"give_up"}}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","policy":{"timeout":"2m","retries":["1m","next"],"give_up_after":"1h","misfire":"skip"},"refresh":"planned"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","refresh":"now"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"rrule":"FREQ=HOURLY","dtstart":"2026-01-01","refresh":"planned"}`,
}

var briefCommands = []string{
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":{"timeout":"30s","retries":["0s","1m","next"]},"refresh":"now"}`,
	`{"type":"put","uid":%q,"payload":{"n":%d},"policy":{"timeout":"20s","retries":[],"on_exhausted":"give_up"},"refresh":"now"}`,
}

var plainCommands = []string{
	`{"type":"run","uid":%q}`, `{"type":"run","uid":%q,"force":true}`, `{"type":"enable","uid":%q}`,
	`{"type":"disable","uid":%q,"reason":"not paid"}`, `{"type":"remove","uid":%q}`, `{"type":"run","uid":%q}`,
	`{"type":"put","uid":%q,"refresh":"now"}`,
}

func (o *operatorRole) think() string {
	uid := o.uids[o.rng.IntN(len(o.uids))]
	if o.temper.rules && o.rng.IntN(2) == 0 {
		return fmt.Sprintf(sharingCommands[o.rng.IntN(len(sharingCommands))], uid, o.rng.IntN(3))
	}
	if o.temper.steers && o.rng.IntN(3) > 0 {
		return steeredCommand(o.rng, uid, o.temper.keyed)
	}
	if o.temper.silent && o.rng.IntN(3) > 0 {
		return silentCommand(o.rng, uid)
	}
	if o.temper.doubts && o.rng.IntN(3) > 0 {
		return guardedCommand(o.rng, uid)
	}
	if o.temper.timed && o.rng.IntN(3) > 0 {
		return timedCommand(o.rng, uid)
	}
	if o.temper.waits && o.rng.IntN(3) > 0 {
		return fmt.Sprintf(briefCommands[o.rng.IntN(len(briefCommands))], uid, o.rng.IntN(3))
	}
	if o.rng.IntN(2) == 0 {
		return fmt.Sprintf(commands[o.rng.IntN(len(commands))], uid, o.rng.IntN(3))
	}
	return fmt.Sprintf(plainCommands[o.rng.IntN(len(plainCommands))], uid)
}

// carryOut does what the command line does: read, decide, apply, and again while others are faster.
func (o *operatorRole) carryOut(ctx context.Context, text string) error {
	command, err := model.DecodeCommand([]byte(text))
	if err != nil {
		return err
	}
	o.orders = append(o.orders, command)
	for taken := ""; ; {
		var code store.Code
		if code, taken, err = o.execute(ctx, command, taken); err != nil || code == store.CodeApplied {
			return err // after an error it is unknown whether it was carried out, and the person looks for himself
		}
	}
}

// execute tries once. taken is the attempt that a worker was found to have, before and after.
func (o *operatorRole) execute(ctx context.Context, command model.Command, taken string) (store.Code, string, error) {
	queue := o.server.store
	now, err := queue.Now(ctx)
	if err != nil {
		return 0, "", err
	}
	snapshot, err := queue.Read(ctx, []string{command.UID}, []*model.Command{&command})
	if err != nil {
		return 0, "", err
	}
	record := snapshot.Records[command.UID]
	attempt := record.AttemptUID
	record.Taken = taken != "" && taken == attempt
	decision, outcome, err := record.Execute(&command, snapshot.Policies, record.Exists, now)
	if err != nil || outcome != model.Applied {
		return store.CodeApplied, "", err
	}
	codes, err := queue.Commit(ctx, store.Batch{Now: now, Items: []store.Item{{Transition: snapshot.Apply(&command, decision, now)}}})
	if err != nil {
		return 0, "", err
	}
	if codes[0] == store.CodeTaken {
		taken = attempt
	}
	return codes[0], taken, nil
}

var _ redis.Hook = wire{}

// applicationRole saves and removes the same models again and again over one connection: what it said last must hold.
type applicationRole struct {
	*world
	unsent []string
}

// round pushes a sequence of commands about one model, each after the one before has arrived.
func (a *applicationRole) round(ctx context.Context) error {
	if len(a.unsent) == 0 && a.storms > 0 {
		a.storms--
		a.think()
	}
	for len(a.unsent) > 0 {
		n := 1 + a.rng.IntN(len(a.unsent))
		var together []any
		for _, text := range a.unsent[:n] {
			together = append(together, text)
		}
		if err := a.server.write.RPush(ctx, a.server.store.Keys.Control, together...).Err(); err != nil {
			return err
		}
		a.unsent = a.unsent[n:]
	}
	return nil
}

func (*applicationRole) resign(context.Context) {}

func (a *applicationRole) think() {
	if a.temper.hands {
		a.rush()
		return
	}
	uid := a.uids[a.rng.IntN(len(a.uids))]
	for range 2 + a.rng.IntN(3) {
		a.saves++
		text := fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"save":%d}%s}`, uid, a.saves, saves[a.rng.IntN(len(saves))])
		if a.rng.IntN(6) == 0 {
			text = fmt.Sprintf(`{"type":"remove","uid":%q}`, uid)
		}
		a.unsent = append(a.unsent, text)
	}
}

// rush wants some models at once, and lets the others wait for a time that comes soon.
func (a *applicationRole) rush() {
	for _, uid := range a.uids {
		text := fmt.Sprintf(`{"type":"run","uid":%q}`, uid)
		if a.rng.IntN(2) == 0 {
			a.saves++
			text = fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"save":%d},"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","refresh":"planned"}`, uid, a.saves)
		}
		a.unsent = append(a.unsent, text)
	}
}

// saves are the other possible parts of a save.
var saves = []string{
	"", "", `,"refresh":"now"`, `,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01"`,
	`,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01","refresh":"planned"`,
}
