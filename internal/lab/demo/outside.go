package demo

import (
	"context"
	"slices"
	"time"

	"github.com/refreshd/refreshd/model"
)

// outside is everybody outside refreshd: the application, the owners of its models, a late worker, and the deployer of the workers. They push JSON,
// each after a certain transition.
type outside struct {
	*servers
	start     time.Time // where the schedules begin
	out       output
	workers   *workers
	reactions []*reaction
	saved     int      // scenarios that were saved
	timedOut  []string // attempts of uidHangs
}

// reaction is an act after the left-th transition of a model with an event.
type reaction struct {
	uid   string
	event model.Event
	left  int
	text  string // empty: nothing is shown
	act   func(ctx context.Context) error
}

func newOutside(s *servers, start time.Time, out output, w *workers) *outside {
	o := &outside{servers: s, start: start, out: out, workers: w}
	o.reactions = []*reaction{
		{uidManual, model.EventCreate, 1, "somebody asks for a refresh by hand", o.run(uidManual)},
		{uidBanner, model.EventStarted, 1, "the banner is edited while its first edition is being refreshed", o.save(uidBanner, 2)},
		{uidBanner, model.EventUpdate, 1, "", func(context.Context) error { close(o.feeds.banner); return nil }},
		{uidMoved, model.EventFailure, 1, "the owner reads the reason and saves the new address", o.save(uidMoved, 2)},
		{uidHangs, model.EventTimeout, 2, "a worker answers for the first attempt, long after its deadline", func(ctx context.Context) error {
			return o.push(ctx, o.store.Keys.Output, map[string]any{"type": "success", "big_table_uid": uidHangs, "refresh_attempt_uid": o.timedOut[0]})
		}},
	}
	return o
}

func (o *outside) save(uid string, edition int) func(context.Context) error {
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.uid == uid })
	return o.order(scenarios[i].put(o.site, o.start, edition))
}

func (o *outside) run(uid string) func(context.Context) error {
	return o.order(map[string]any{"type": "run", "uid": uid})
}

func (o *outside) order(message map[string]any) func(context.Context) error {
	return func(ctx context.Context) error { return o.push(ctx, o.store.Keys.Control, message) }
}

func (o *outside) saveNext(ctx context.Context) error {
	if o.saved == len(scenarios) {
		return nil
	}
	o.saved++
	return o.save(scenarios[o.saved-1].uid, 1)(ctx)
}

func (o *outside) react(ctx context.Context, e model.JournalEntry) error {
	if e.UID == uidHangs && e.Event == model.EventTimeout {
		o.timedOut = append(o.timedOut, e.AttemptUID)
	}
	for _, r := range o.reactions {
		if r.uid != e.UID || r.event != e.Event {
			continue
		}
		if r.left--; r.left != 0 {
			continue
		}
		if r.text != "" {
			o.out.line(actLine(e.At, r.uid, r.text))
		}
		if err := r.act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// workersStopped runs when the last worker has stopped: attempts that start now wait until their deadline.
func (o *outside) workersStopped(ctx context.Context) error {
	o.reactions = append(o.reactions, &reaction{uidManual, model.EventWithdrawn, 1, "the workers are back", func(context.Context) error {
		o.workers.restart <- struct{}{}
		return nil
	}})
	if err := o.show(ctx, uidManual, "no worker is there: somebody asks for a refresh by hand"); err != nil {
		return err
	}
	return o.run(uidManual)(ctx)
}

func (o *outside) show(ctx context.Context, uid, text string) error {
	now, err := o.store.Now(ctx)
	if err != nil {
		return err
	}
	o.out.line(actLine(now, uid, text))
	return nil
}
