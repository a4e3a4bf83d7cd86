package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// applicationRole saves and removes the same models again and again over one connection: what it said last must hold.
type applicationRole struct {
	server *server
	rng    *rand.Rand
	uids   []string
	left   *int // sequences that are still to be pushed
	saves  *int // numbers its saves
	hasty  bool // it wants many at once
	unsent []string
}

// round pushes a sequence of commands about one model, each after the one before has arrived.
func (a *applicationRole) round(ctx context.Context) error {
	if len(a.unsent) == 0 && *a.left > 0 {
		*a.left--
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
	if a.hasty {
		a.rush()
		return
	}
	uid := a.uids[a.rng.IntN(len(a.uids))]
	for range 2 + a.rng.IntN(3) {
		*a.saves++
		text := fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"save":%d}%s}`, uid, *a.saves, saves[a.rng.IntN(len(saves))])
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
			*a.saves++
			text = fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"save":%d},"rrule":"FREQ=MINUTELY;INTERVAL=10","dtstart":"2026-01-01","refresh":"planned"}`, uid, *a.saves)
		}
		a.unsent = append(a.unsent, text)
	}
}

// saves are what else a save may say.
var saves = []string{
	"", "", `,"refresh":"now"`, `,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01"`,
	`,"rrule":"FREQ=MINUTELY;INTERVAL=5","dtstart":"2026-01-01","refresh":"planned"`,
}
