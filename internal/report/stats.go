package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
)

// Stats has the sizes of a queue, or a part of it, at one instant, and its counts since it began. Reading it does not take longer with more models.
type Stats struct {
	At time.Time `json:"at"`

	Due      int64        `json:"due"`      // idle models whose refresh_at has come, the urgent ones included
	Urgent   int64        `json:"urgent"`   // due models that somebody wants to be started at once
	Waiting  int64        `json:"waiting"`  // idle models whose refresh_at lies ahead
	Running  int64        `json:"running"`  // models with an attempt queued or in the hands of a worker
	Input    int64        `json:"input"`    // attempts that no worker has taken
	Output   int64        `json:"output"`   // messages of workers that no poller has taken
	Control  int64        `json:"control"`  // messages of applications that no poller has taken
	Claimed  int64        `json:"claimed"`  // messages that pollers have taken and not yet applied
	Failing  int64        `json:"failing"`  // models that have failed since their last success
	Errors   Fingerprints `json:"causes"`   // of those
	Rejected int64        `json:"rejected"` // unusable messages kept
	Journal  int64        `json:"journal"`  // transitions kept
	Outbox   int64        `json:"outbox"`   // notifications not yet delivered
	// Counters are the fields of <queue>:stats. A field that is no number is left out.
	Counters map[string]int64 `json:"counters"`

	Disabled int64
	Parked   int64
	// ParkedBy is how many of the parked wait for blockers of each kind; the rest of Parked waits for blockers beyond the first 1,000.
	ParkedBy map[string]int64
	// OldestDue is the refresh_at of the idle model that is due for longest; zero: none is due.
	OldestDue time.Time
	// Freshness counts the models whose policies promise some.
	Freshness FreshnessCounts
	// OldestNotice is when the oldest notification of the outbox is; zero: there is none.
	OldestNotice time.Time

	// OpenCircuits are the keys with open circuits for which models wait. QueueCircuitOpen is for the queue.
	OpenCircuits     int64
	QueueCircuitOpen bool
	// Living is how many of each role have given a heartbeat that is not too old whatever their settings.
	Living map[model.Role]int64
}

// Fingerprints counts the failing models of each failure group, by its id.
type Fingerprints map[string]int64

// MarshalJSON writes only how many there are: other reports list them.
func (f Fingerprints) MarshalJSON() ([]byte, error) { return json.Marshal(len(f)) }

// Retries returns the counts that judge retries: ended ones, successful ones, and cycles that needed one.
func (s *Stats) Retries() (total, successful, cycles int64) {
	return s.Counters[model.CounterRetries], s.Counters[model.CounterRetriesHelped], s.Counters[model.CounterRetriedCycles]
}

// FreshnessCounts counts the models of each freshness, if their policies promise some.
type FreshnessCounts map[model.Freshness]int64

// Watched counts the models whose policies promise some freshness.
func (c FreshnessCounts) Watched() int64 {
	return c[model.Fresh] + c[model.FreshnessNever] + c[model.FreshnessLate] + c[model.FreshnessStale]
}

// Stats reads the queue. The number of calls does not depend on its size. The numbers are read one after the other: on a busy queue they may not
// match exactly. A key of the wrong type counts as empty; if it may hold a model or a message, it is also an error, see redis.WrongType.
func (r Report) Stats(ctx context.Context) (stats Stats, err error) {
	unread, err := outbox.Of(r.store).FirstUnread(ctx)
	if _, wrong := redis.WrongType(err); err != nil && !wrong {
		return Stats{}, err
	}
	if stats.At, err = r.store.Now(ctx); err != nil {
		return Stats{}, err
	}
	pipe := r.store.Clients.Read.Pipeline()
	counted := r.askCounts(ctx, pipe, &stats)
	oldestDue, circuit := r.store.Report().AskOldestDue(ctx, pipe), pipe.HMGet(ctx, r.store.Keys.QueueCircuit, "opened_at")
	groups, counters := pipe.ZRangeWithScores(ctx, r.store.Keys.Errors, 0, -1), pipe.HGetAll(ctx, r.store.Keys.Stats)
	blockers, pollers := pipe.ZRange(ctx, r.store.Keys.Blockers, 0, store.MaxBlockers-1), pipe.ZRange(ctx, r.store.Keys.Pollers, 0, -1)
	recipients := pipe.HKeys(ctx, r.store.Keys.Deliveries)
	journal := pipe.XLen(ctx, r.store.Keys.Journal) // last, as miniredis answers it twice where the type is wrong
	wrong, err := redis.ExecTyped(ctx, pipe)
	if err != nil {
		return Stats{}, fmt.Errorf("read stats: %w", err)
	}
	counted()
	if stats.OldestDue = oldestDue(); stats.OldestDue.After(stats.At) {
		stats.OldestDue = time.Time{}
	}
	stats.Journal = journal.Val()
	stats.QueueCircuitOpen = slices.ContainsFunc(circuit.Val(), func(at any) bool { return redis.Text(at) != "" })
	stats.Errors = make(Fingerprints, len(groups.Val()))
	for _, group := range groups.Val() {
		stats.Errors[redis.Text(group.Member)] = int64(group.Score)
	}
	stats.Counters = make(map[string]int64, len(counters.Val()))
	for name, text := range counters.Val() {
		if count, err := strconv.ParseInt(text, 10, 64); err == nil && !strings.HasPrefix(name, model.QueueCircuitPrefix) {
			stats.Counters[name] = count
		}
	}
	err = r.readLists(ctx, &stats, blockers.Val(), append(pollers.Val(), store.CommandOwner), recipients.Val(), unread)
	return stats, redis.Wrap(cmp.Or(err, wrong), "read stats")
}

// askCounts asks for the sizes of keys; the function that it returns notes them.
func (r Report) askCounts(ctx context.Context, pipe goredis.Pipeliner, stats *Stats) func() {
	k, now, alive := r.store.Keys, redis.Millis(stats.At), redis.Millis(stats.At.Add(-model.LongestSilence))
	run := redis.Millis(stats.At.Add(-model.RunAhead))
	var idle, urgent, runs, ages, late, stale, never int64
	counts := map[*int64]*goredis.IntCmd{
		&stats.Due: pipe.ZCount(ctx, k.Due, "-inf", now), &idle: pipe.ZCard(ctx, k.Due), &urgent: pipe.ZCard(ctx, k.Urgent),
		&stats.Urgent: pipe.ZCount(ctx, k.Urgent, "0", now), &runs: pipe.ZCount(ctx, k.Urgent, "-inf", run), // others wait for their slot
		&stats.Running: pipe.ZCard(ctx, k.Running), &stats.Failing: pipe.ZCard(ctx, k.Failing), &stats.Disabled: pipe.ZCard(ctx, k.Disabled),
		&stats.Parked: pipe.ZCard(ctx, k.Parked), &stats.Input: pipe.LLen(ctx, k.Input), &stats.Output: pipe.LLen(ctx, k.Output),
		&stats.Control: pipe.LLen(ctx, k.Control), &stats.Rejected: pipe.LLen(ctx, k.Rejected),
		&ages: pipe.ZCard(ctx, k.StaleAt), &late: pipe.ZCard(ctx, k.Late), &stale: pipe.ZCard(ctx, k.Stale),
		&never: pipe.ZCount(ctx, k.Late, redis.Millis(model.Never), "+inf"),
	}
	roles := k.Heartbeats()
	living := redis.Map(model.Roles, func(role model.Role) *goredis.IntCmd { return pipe.ZCount(ctx, roles[role], alive, "+inf") })
	return func() {
		for to, count := range counts {
			*to = count.Val()
		}
		stats.Urgent += runs
		stats.Waiting, stats.Due = max(0, idle+urgent-stats.Due-stats.Urgent), stats.Due+stats.Urgent
		stats.Freshness = FreshnessCounts{
			model.Fresh: max(0, ages-late), model.FreshnessNever: never, model.FreshnessLate: max(0, late-never), model.FreshnessStale: stale,
		}
		stats.Living = make(map[model.Role]int64, len(model.Roles))
		for i, role := range model.Roles {
			stats.Living[role] = living[i].Val()
		}
	}
}

// maxCounted is up to how many entries of the outbox are counted one by one. Of more, those that were acknowledged and not trimmed yet count too.
const maxCounted = 1000

// readLists reads what blockers keep parked, what pollers have claimed, and what waits for recipients: in their mailboxes, and in the outbox from the
// first entry on that some group has not acknowledged.
func (r Report) readLists(ctx context.Context, stats *Stats, blockers, pollers, recipients []string, unread string) error {
	pipe, k, most := r.store.Clients.Read.Pipeline(), r.store.Keys, int64(maxCounted)
	if unread == "" { // nobody has acknowledged any: they all count
		most = 1
	}
	parked := redis.Map(blockers, func(blocker string) *goredis.IntCmd { return pipe.ZCard(ctx, k.ParkedBy(blocker)) })
	claimed := redis.Map(pollers, func(owner string) *goredis.IntCmd { return pipe.LLen(ctx, k.Claimed(owner)) })
	waiting := redis.Map(recipients, func(recipient string) *goredis.IntCmd { return pipe.LLen(ctx, k.Notices(recipient)) })
	heads := redis.Map(recipients, func(recipient string) *goredis.StringCmd { return pipe.LIndex(ctx, k.Notices(recipient), 0) })
	entries, outbox := pipe.XRangeN(ctx, k.Outbox, cmp.Or(unread, "-"), "+", most), pipe.XLen(ctx, k.Outbox)
	if err := redis.ExecReads(ctx, pipe); err != nil {
		return err
	}
	stats.ParkedBy = map[string]int64{}
	for i, blocker := range blockers {
		kind, _ := model.Blocker(blocker).Split()
		stats.ParkedBy[kind] += parked[i].Val()
		if kind == model.BlockerCircuit && parked[i].Val() > 0 {
			stats.OpenCircuits++
		}
	}
	for _, list := range claimed {
		stats.Claimed += list.Val()
	}
	if stats.Outbox = int64(len(entries.Val())); stats.Outbox == most {
		stats.Outbox = outbox.Val()
	}
	if len(entries.Val()) > 0 {
		oldest := entries.Val()[0]
		at, err := time.Parse(time.RFC3339, redis.Text(oldest.Values["at"]))
		if err != nil { // of somebody else
			at = time.UnixMilli(redis.WrittenAt(oldest.ID))
		}
		stats.OldestNotice = at.UTC()
	}
	for i, mailbox := range waiting {
		var head struct{ At time.Time }
		_ = json.Unmarshal([]byte(heads[i].Val()), &head) // what cannot be read, or is none, has no time
		stats.Outbox, stats.OldestNotice = stats.Outbox+mailbox.Val(), store.Earlier(stats.OldestNotice, head.At)
	}
	return nil
}

// Stats adds up the parts of a queue. It is as of the last one that was read.
func (q Queue) Stats(ctx context.Context) (sum Stats, err error) {
	err = q.queue.Each(func(part *store.Store) error {
		stats, err := Of(part).Stats(ctx)
		if !stats.At.IsZero() { // else nothing of the part could be read
			sum.Add(&stats)
		}
		return err
	})
	return sum, err
}

// Add adds another part. Of instants it keeps the oldest; Living is how many there are where there are fewest.
func (s *Stats) Add(more *Stats) {
	if s.Counters == nil {
		*s = Stats{
			ParkedBy: map[string]int64{}, Freshness: FreshnessCounts{}, Errors: Fingerprints{}, Counters: map[string]int64{}, Living: maps.Clone(more.Living),
		}
	}
	if more.At.After(s.At) {
		s.At = more.At
	}
	for sum, count := range map[*int64]int64{
		&s.Due: more.Due, &s.Urgent: more.Urgent, &s.Waiting: more.Waiting, &s.Running: more.Running, &s.Failing: more.Failing, &s.Disabled: more.Disabled,
		&s.Parked: more.Parked, &s.Input: more.Input, &s.Output: more.Output, &s.Control: more.Control, &s.Claimed: more.Claimed, &s.Rejected: more.Rejected,
		&s.Journal: more.Journal, &s.Outbox: more.Outbox, &s.OpenCircuits: more.OpenCircuits,
	} {
		*sum += count
	}
	s.QueueCircuitOpen = s.QueueCircuitOpen || more.QueueCircuitOpen
	s.OldestDue, s.OldestNotice = store.Earlier(s.OldestDue, more.OldestDue), store.Earlier(s.OldestNotice, more.OldestNotice)
	for role, count := range more.Living {
		s.Living[role] = min(s.Living[role], count)
	}
	store.AddUp(s.ParkedBy, more.ParkedBy)
	store.AddUp(s.Freshness, more.Freshness)
	store.AddUp(s.Errors, more.Errors)
	store.AddUp(s.Counters, more.Counters)
}

// Version is a text that changes with anything in the queue that people see, whether there is a journal or not. What time alone
// changes is not seen, but for processes that fall silent. It takes some twenty commands in one round trip for each part.
func (q Queue) Version(ctx context.Context) (string, error) {
	var text strings.Builder
	err := q.queue.Each(func(part *store.Store) error {
		pipe, k := part.Clients.Read.Pipeline(), part.Keys
		counters, changes := pipe.HGetAll(ctx, k.Stats), pipe.HGet(ctx, k.Forwarded, store.FieldChanges)
		sizes := redis.Map([]string{k.Input, k.Output, k.Control, k.Rejected}, func(list string) *goredis.IntCmd { return pipe.LLen(ctx, list) })
		sizes = append(sizes, redis.Map([]string{k.Due, k.Urgent, k.Parked, k.Running, k.Bulks, k.BulksEnded}, func(set string) *goredis.IntCmd { return pipe.ZCard(ctx, set) })...)
		beats := part.Report().AskHeartbeats(ctx, pipe)
		if _, err := redis.ExecTyped(ctx, pipe); err != nil {
			return fmt.Errorf("read whether the queue has changed: %w", err)
		}
		heartbeats, now, err := beats()
		fmt.Fprint(&text, "\n", counters.Val(), changes.Val())
		for _, size := range sizes {
			fmt.Fprint(&text, " ", size.Val())
		}
		for _, beat := range heartbeats {
			fmt.Fprint(&text, "\n", beat.Key, beat.Owner, now.Sub(beat.At) > model.LongestSilence)
		}
		return err
	})
	return text.String(), err
}
