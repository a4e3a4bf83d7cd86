package poller

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/flow"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// maxHeads is how many models of a key are tried, one after the other. Then its places are left to a dispatcher.
const maxHeads = 3

// handover starts models in the places of keys that the ends of a batch give back.
type handover struct {
	flow.Waiting
	batch  *store.Batch
	ends   map[string][]string // models whose attempts end, by key, whose places nobody has taken yet
	known  model.Limiters      // with the places that the batch gives back
	newUID func() string
}

// handOver adds to a batch, behind its ends, the starts of the models that wait for their places. It leaves to a dispatcher what it cannot decide.
func (p *Poller) handOver(ctx context.Context, batch *store.Batch) error {
	h := handover{batch: batch, ends: endsOf(batch), newUID: p.config.NewUID}
	if len(h.ends) == 0 {
		return nil
	}
	err := p.readWaiting(ctx, &h)
	if len(h.Heads) > 0 {
		p.handed = batch.Now
	}
	for try := 0; err == nil && try < maxHeads && len(h.Heads) > 0; try++ {
		err = p.startHeads(ctx, &h)
	}
	if redis.Refused(err) { // its user was made for a release in which dispatchers alone started models
		p.logbook.Fault(zerolog.WarnLevel, err.Error(), batch.Now).Err(err).Msg("poller: may start no model, see refreshd acl")
		return nil
	}
	return p.logbook.IgnoreWrongType(err, batch.Now)
}

// endsOf lists, by key of a limit, the models that give a place back. A key that an answer closes is none.
func endsOf(batch *store.Batch) map[string][]string {
	ends, closed := map[string][]string{}, map[string]bool{}
	for _, item := range batch.Items {
		if item.Transition == nil {
			continue
		}
		for _, name := range item.Transition.Frees() {
			ends[name] = append(ends[name], item.Transition.UID())
			closed[name] = closed[name] || item.Transition.Decision().ClosedUntil.After(batch.Now)
		}
	}
	maps.DeleteFunc(ends, func(name string, _ []string) bool { return closed[name] })
	return ends
}

func (p *Poller) readWaiting(ctx context.Context, h *handover) (err error) {
	places := map[string]int{}
	for name, ends := range h.ends {
		places[name] = len(ends)
	}
	h.Waiting, err = p.flow.Waiting(ctx, places, h.batch.Now)
	h.learn(h.Limiters)
	h.batch.MaxQueued, h.batch.HoldChanges = h.Window, h.Blockers.HoldChanges
	return err
}

// startHeads tries for each key as many models as it has places.
func (p *Poller) startHeads(ctx context.Context, h *handover) error {
	heads := h.take()
	uids := slices.Concat(slices.Collect(maps.Values(heads))...)
	records, err := p.store.Load(ctx, uids)
	if err != nil {
		return err
	}
	if err := p.readLimiters(ctx, h, records); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		for _, uid := range heads[name] {
			if !h.decide(name, records[uid]) {
				delete(h.Heads, name)
				break
			}
		}
	}
	return nil
}

// take takes the first of the models that wait, for each key as many as it has places.
func (h *handover) take() map[string][]string {
	taken := map[string][]string{}
	for name, heads := range h.Heads {
		n := min(len(heads), len(h.ends[name]))
		if taken[name], h.Heads[name] = heads[:n], heads[n:]; n == 0 {
			delete(h.Heads, name)
			delete(taken, name)
		}
	}
	return taken
}

// readLimiters reads what the keys of models have left that are not known yet.
func (p *Poller) readLimiters(ctx context.Context, h *handover, records map[string]*store.Record) error {
	limits, circuits := map[string]bool{}, map[string]bool{}
	for _, record := range records {
		needed, circuit := h.Blockers.Needs(&record.Model, h.batch.Now)
		for _, limit := range needed {
			limits[limit.Name] = h.known.Keys[limit.Name] == nil
		}
		circuits[circuit] = circuit != "" && h.known.Circuits[circuit] == nil
	}
	names, keys := chosen(limits), chosen(circuits)
	if len(names)+len(keys) == 0 {
		return nil
	}
	more, err := p.flow.ReadLimiters(ctx, names, keys, h.batch.Now)
	h.learn(more)
	return err
}

func (h *handover) learn(more model.Limiters) {
	h.known.Learn(more)
	for name := range more.Keys {
		h.known.Free(name, len(h.ends[name]))
	}
}

func chosen(names map[string]bool) []string {
	maps.DeleteFunc(names, func(_ string, wanted bool) bool { return !wanted })
	return slices.Sorted(maps.Keys(names))
}

// decide decides about a model that waits for a place of a key. false: no other model may have one now.
func (h *handover) decide(name string, record *store.Record) bool {
	blocker, now := model.NewBlocker(model.BlockerLimit, name), h.batch.Now
	if record.Fault != "" || record.ParkedBy != blocker {
		return false
	}
	decision, goes := h.Blockers.Pass(&record.Model, &h.known, h.newUID(), now)
	if !goes {
		return false
	}
	item := store.Item{Transition: record.Decide(decision, now)}
	if decision.Event == model.EventStart {
		ends := h.ends[name]
		item.Behind, h.ends[name] = ends[0], ends[1:]
	}
	h.batch.Items = append(h.batch.Items, item)
	return true
}

// noteStarts counts and logs what became of the items behind those of the messages. A dispatcher decides again about what was refused.
func (p *Poller) noteStarts(items []store.Item, codes []store.Code, now time.Time, round *Round) {
	for i, code := range codes {
		if p.logbook.WrongType(items[i].WrongType, now); code != store.CodeApplied {
			continue
		}
		if p.logbook.Applied(items[i].Transition, now); items[i].Transition.Event() == model.EventStart {
			round.Started++
		}
	}
}
