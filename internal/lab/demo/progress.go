package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

// statusEvery is how often statuses are read, and how often the next model is saved, so that the user can follow.
const statusEvery = 250 * time.Millisecond

// progress follows the queue, prints the events, ticks behaviours off, and lets outside react. Only the goroutine of watch uses its fields.
type progress struct {
	store    *store.Store
	out      output
	check    *checklist
	outside  *outside
	complete func()               // called once when every behaviour was seen
	outbox   string               // position in the outbox
	notices  []model.Notification // read, and not yet shown
	statuses map[string]status    // the latest of each model
	planned  map[string]time.Time // the last refresh_at of each model in the journal
}

type status struct {
	attempt, text string
	percent       int
}

// runBeside prints the events of the daemons until ctx ends or life is over; 0: never. It waits for the daemons, up to a second for a blocked call to
// Redis.
func (p *progress) runBeside(ctx context.Context, daemons daemons, life time.Duration, log *zerolog.Logger) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if life > 0 {
		ctx, end = context.WithTimeout(ctx, life)
		defer end()
	}
	var running sync.WaitGroup
	for name, run := range daemons {
		running.Go(func() {
			if err := run(ctx); err != nil {
				log.Error().Err(err).Msg("demo: " + name + " stopped")
			}
		})
	}
	news := make(chan tail)
	running.Go(func() { follow(ctx, p.store, news) })
	err := p.watch(ctx, news)
	end()
	running.Wait()
	return err
}

type tail struct {
	entries []model.JournalEntry
	err     error
}

func follow(ctx context.Context, queue *store.Store, news chan<- tail) {
	var t tail
	for position := report.TailStart; ctx.Err() == nil && t.err == nil; {
		t.entries, position, t.err = report.Of(queue).Tail(ctx, position)
		select {
		case news <- t:
		case <-ctx.Done():
		}
	}
}

func (p *progress) watch(ctx context.Context, news <-chan tail) error {
	ticker := time.NewTicker(statusEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case t := <-news:
			err = errors.Join(t.err, p.read(ctx, t.entries))
		case <-p.outside.feeds.stopped:
			// A transition would come too early: the workers might stop before their request has reached the feed, and the next request would get
			// stuck instead.
			p.outside.workers.stop <- struct{}{}
			err = p.outside.show(ctx, uidSlow, "a deploy: the workers have to stop")
		case <-p.outside.workers.stopped:
			err = p.outside.workersStopped(ctx)
		case <-ticker.C:
			err = errors.Join(p.outside.saveNext(ctx), p.readStatuses(ctx))
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !p.check.complete() {
			p.check.tick()
			if p.check.complete() {
				p.complete()
			}
		}
	}
}

// read prints transitions, each with the notification that was written with it.
func (p *progress) read(ctx context.Context, entries []model.JournalEntry) error {
	notices, position, err := report.Of(p.store).TailOutbox(ctx, p.outbox)
	if err != nil {
		return err
	}
	// Some belong to transitions of the next read.
	p.notices, p.outbox = append(p.notices, notices...), position
	for _, e := range entries {
		p.check.transition(e)
		p.out.line(transitionLine(e, p.planned[e.UID]))
		if !e.RefreshAt.IsZero() {
			p.planned[e.UID] = e.RefreshAt
		}
		if len(p.notices) > 0 {
			n := p.notices[0]
			written := e.Final || n.Notice == policy.NoticeRecovered && e.Event == model.EventSuccess
			if written && e.UID == n.UID && e.At.Equal(n.At) { // it was written with the transition
				p.check.notice(n)
				p.out.line(noticeLine(n))
				p.notices = p.notices[1:]
			}
		}
		if err := p.outside.react(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (p *progress) readStatuses(ctx context.Context) error {
	stats, err := report.Of(p.store).Stats(ctx)
	if err != nil {
		return err
	}
	uids := redis.Map(scenarios, func(s scenario) string { return s.uid })
	records, err := p.store.Load(ctx, uids)
	if err != nil {
		return err
	}
	for _, uid := range uids {
		record := records[uid]
		// A status of a running attempt is no transition.
		latest := status{record.AttemptUID, record.UserFriendlyStatus, record.Progress}
		if !record.Running() || latest.text == "" || latest == p.statuses[uid] {
			continue
		}
		p.statuses[uid] = latest
		p.out.line(statusLine(stats.At, record))
		if record.Progress > 0 && record.Progress < 100 {
			p.check.evidence.progress[uid] = true
		}
	}
	p.check.evidence.counters = stats.Counters
	return nil
}

// conclude prints a summary, and returns the missing events if there was a time limit.
func (p *progress) conclude(ctx context.Context, life time.Duration) error {
	stats, err := report.Of(p.store).Stats(ctx)
	if err != nil {
		return err
	}
	p.check.evidence.counters = stats.Counters
	p.check.tick()
	p.out.summary(p.check, stats.Counters)
	if life > 0 && !p.check.complete() {
		return fmt.Errorf("%w: %d of %d in %s; what is missing has no mark above", ErrNotSeen, p.check.count(), len(behaviours), life)
	}
	return nil
}
