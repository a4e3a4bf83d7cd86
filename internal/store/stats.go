package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Stats is what a queue holds at one instant, and what it has counted since it began.
type Stats struct {
	At time.Time

	Due     int64 // idle models whose refresh_at has come, the urgent ones included
	Urgent  int64 // those of them that somebody wants to be started at once
	Waiting int64 // idle models whose refresh_at lies ahead
	Running int64 // models with an attempt queued or in the hands of a worker

	// Freshness counts the models of which a policy promises some.
	Freshness FreshnessCounts

	Input   int64 // attempts that no worker has taken
	Output  int64 // messages of workers that no poller has taken
	Control int64 // messages of applications that no poller has taken
	Claimed int64 // messages that pollers have taken and not yet applied

	Failing int64            // models that have failed since their last success
	Errors  map[string]int64 // id of a signature to how many of them fail by it

	Rejected int64 // unusable messages kept
	Journal  int64 // transitions kept
	Outbox   int64 // notifications not yet delivered
	// OldestNotice is when the oldest of them is; zero: there is none.
	OldestNotice time.Time

	// Counters are the fields of <queue>:stats. A field that is no number is left out.
	Counters map[string]int64
}

// Retries are the counts by which retries are judged: those that have ended, those of them that succeeded, and cycles that needed one.
func (s Stats) Retries() (total, successful, cycles int64) {
	return s.Counters[model.CounterRetries], s.Counters[model.CounterRetriesHelped], s.Counters[model.CounterRetriedCycles]
}

// Stats reads the queue. The numbers are read one after the other: on a busy queue they may differ by what happens meanwhile.
func (s Report) Stats(ctx context.Context) (Stats, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return Stats{}, err
	}
	owners, err := s.Clients.Read.ZRange(ctx, s.Keys.Pollers(), 0, -1).Result()
	if err != nil {
		return Stats{}, fmt.Errorf("read pollers: %w", err)
	}
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	due, idle, running := pipe.ZCount(ctx, k.Due(), "-inf", Millis(now)), pipe.ZCard(ctx, k.Due()), pipe.ZCard(ctx, k.Running())
	urgent := pipe.ZCard(ctx, k.Urgent())
	input, output, control := pipe.LLen(ctx, k.Input()), pipe.LLen(ctx, k.Output()), pipe.LLen(ctx, k.Control())
	rejected, journal := pipe.LLen(ctx, k.Rejected()), pipe.XLen(ctx, k.Journal())
	created := pipe.XLen(ctx, k.Created())
	failing, signatures := pipe.ZCard(ctx, k.Failing()), pipe.ZRangeWithScores(ctx, k.Errors(), 0, -1)
	counters := pipe.HGetAll(ctx, k.Stats())
	owners = append(owners, LaneOwner)
	claimed := SendEach(owners, func(owner string) *redis.IntCmd { return pipe.LLen(ctx, k.Claimed(owner)) })
	if _, err := pipe.Exec(ctx); err != nil {
		return Stats{}, fmt.Errorf("read stats: %w", err)
	}
	freshness, err := s.FreshnessCounts(ctx)
	if err != nil {
		return Stats{}, err
	}
	outbox, oldest, err := s.undelivered(ctx)
	if err != nil {
		return Stats{}, err
	}
	stats := Stats{
		Freshness: freshness,
		At:        now, Urgent: urgent.Val(), Due: due.Val() + urgent.Val(), Waiting: max(0, idle.Val()-due.Val()), Running: running.Val(),
		Input: input.Val(), Output: output.Val(), Control: control.Val(),
		Rejected: rejected.Val(), Journal: journal.Val() + created.Val(), Outbox: outbox, OldestNotice: oldest,
		Failing: failing.Val(), Errors: make(map[string]int64), Counters: make(map[string]int64),
	}
	for _, signature := range signatures.Val() {
		stats.Errors[Text(signature.Member)] = int64(signature.Score)
	}
	for _, list := range claimed {
		stats.Claimed += list.Val()
	}
	for name, text := range counters.Val() {
		if count, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.HasPrefix(name, model.QueueCircuitPrefix) {
			stats.Counters[name] = count
		}
	}
	return stats, nil
}

// Stats adds up the parts of a queue. It is as of the last one that was read.
func (q QueueReport) Stats(ctx context.Context) (sum Stats, err error) {
	err = q.Each(func(part *Store) error {
		stats, err := part.Report().Stats(ctx)
		sum.add(&stats)
		return err
	})
	return sum, err
}

// add adds another part.
func (s *Stats) add(more *Stats) {
	if s.Counters == nil {
		s.Counters, s.Freshness, s.Errors = make(map[string]int64), FreshnessCounts{}, make(map[string]int64)
	}
	if more.At.After(s.At) {
		s.At = more.At
	}
	s.Due, s.Urgent, s.Waiting, s.Running = s.Due+more.Due, s.Urgent+more.Urgent, s.Waiting+more.Waiting, s.Running+more.Running
	s.Input, s.Output, s.Control, s.Claimed = s.Input+more.Input, s.Output+more.Output, s.Control+more.Control, s.Claimed+more.Claimed
	s.Rejected, s.Journal, s.Outbox = s.Rejected+more.Rejected, s.Journal+more.Journal, s.Outbox+more.Outbox
	s.OldestNotice = earlier(s.OldestNotice, more.OldestNotice)
	s.Failing += more.Failing
	addUp(s.Errors, more.Errors)
	addUp(s.Freshness, more.Freshness)
	addUp(s.Counters, more.Counters)
}

// Report is what people and programs read of a part: numbers, histories, journal and freshness. It changes nothing.
type Report struct{ *Store }

// Report reads what is told of the part.
func (s *Store) Report() Report { return Report{s} }

// QueueReport is Report of all parts of a queue.
type QueueReport struct{ *Queue }

// Report reads what is told of the queue.
func (q *Queue) Report() QueueReport { return QueueReport{q} }
