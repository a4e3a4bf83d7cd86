package operate

import (
	"cmp"
	"context"
	"time"

	"github.com/refreshd/refreshd/internal/preview/forecast"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Slots is how many slots of workers a queue needs until a time.
type Slots struct {
	Queue   string    `json:"queue"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Running int       `json:"running"` // attempts that wait for a worker or are at work
	Starts  int       `json:"starts"`  // attempts that will start
	Slots   int       `json:"slots"`   // enough for the busiest minute
}

// PlanSlots reads the models that run or start within a horizon, 1m to 1h, and no others: a scaler makes the queue read them again and again.
func PlanSlots(ctx context.Context, queue *store.Queue, horizon string) (Slots, error) {
	ahead, err := readLength("horizon", horizon, time.Minute, time.Hour, "1m to 1h")
	if err != nil {
		return Slots{}, err
	}
	first := queue.Parts[0]
	now, err := first.Now(ctx)
	if err != nil {
		return Slots{}, err
	}
	blockers, err := first.Fleet().Blockers(ctx)
	if err != nil {
		return Slots{}, err
	}
	found := Slots{Queue: queue.Name, From: now, To: now.Add(ahead)}
	plan := planned{walker: forecast.NewWalker(now, found.To, blockers), now: now}
	if err := queue.Each(func(part *store.Store) error { return plan.read(ctx, part, found.To) }); err != nil {
		return Slots{}, err
	}
	found.Running, found.Starts = plan.running, len(plan.attempts)-plan.running
	found.Slots = plan.slots(found.To)
	return found, nil
}

type planned struct {
	walker   *forecast.Walker
	now      time.Time
	attempts []plannedAttempt
	running  int // of the attempts
}

type plannedAttempt struct {
	at   time.Time
	took time.Duration // 0: not known
}

// read collects the attempts of a part from the indexes of models that run or are due by then.
func (p *planned) read(ctx context.Context, part *store.Store, to time.Time) error {
	keys := part.Keys
	for _, index := range []struct {
		key   string
		until time.Time // of the scores
	}{{keys.Running, model.Never}, {keys.Due, to}, {keys.Urgent, to}, {keys.Parked, to}} {
		for after, more := (store.Scored{}), true; more; {
			page, err := part.Report().Behind(ctx, index.key, after, redis.ScanCount)
			if err != nil {
				return err
			}
			more = len(page) == redis.ScanCount && page[len(page)-1].Score <= index.until.UnixMilli()
			uids := make([]string, 0, len(page))
			for _, after = range page {
				if after.Score <= index.until.UnixMilli() {
					uids = append(uids, after.UID)
				}
			}
			if err := p.add(ctx, part, uids); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *planned) add(ctx context.Context, part *store.Store, uids []string) error {
	if len(uids) == 0 {
		return nil
	}
	records, err := part.Load(ctx, uids)
	if err != nil {
		return err
	}
	past, err := part.Report().Histories(ctx, uids, lastAttempts)
	for uid, record := range records {
		if !record.Exists || record.Broken {
			continue
		}
		took := forecast.Length(past[uid])
		if record.Running() {
			p.running++
			p.attempts = append(p.attempts, plannedAttempt{p.now, left(&record.Model, took, p.now)})
		}
		p.walker.Starts(&record.Model, took, func(at time.Time) { p.attempts = append(p.attempts, plannedAttempt{at, took}) })
	}
	return err
}

// left is the rest of a running attempt. One that should have ended waited for a worker, and needs its whole time.
func left(m *model.Model, took time.Duration, now time.Time) time.Duration {
	if rest := m.StartedAt.Add(took).Sub(now); rest > 0 {
		return rest
	}
	return took
}

// slots uses the mean length for attempts of unknown length, and at least one slot.
func (p *planned) slots(to time.Time) int {
	if len(p.attempts) == 0 {
		return 0
	}
	sum, known := time.Duration(0), 0
	for _, attempt := range p.attempts {
		if attempt.took > 0 {
			sum, known = sum+attempt.took, known+1
		}
	}
	work := forecast.NewWork(p.now, to)
	for _, attempt := range p.attempts {
		work.Add(attempt.at, cmp.Or(attempt.took, sum/time.Duration(max(1, known))))
	}
	return max(1, work.Slots())
}
