package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/model"
)

// Gauges is what a queue, or a part of it, is at one instant: Stats, and what else a monitor draws. How much is read does not grow with the
// models.
type Gauges struct {
	Stats
	Disabled int64
	Parked   int64
	// ParkedBy is how many of the parked wait for gates of each kind; the rest of Parked waits for gates beyond the first 1,000.
	ParkedBy map[string]int64
	// OldestDue is the refresh_at of the idle model that is due for longest; zero: none is due.
	OldestDue time.Time
	// OpenCircuits are the keys whose circuits models wait for. QueueCircuitOpen is that of the queue.
	OpenCircuits     int64
	QueueCircuitOpen bool
	// Living is how many of each party have given a heartbeat that is not too old whatever their settings.
	Living map[model.Role]int64
}

// Gauges reads the queue, with as many calls whatever it holds, but two for each recipient that is to be told something. The numbers are read one after the other, as those of Stats.
func (s Report) Gauges(ctx context.Context) (Gauges, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return Gauges{}, err
	}
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	disabled, parked := pipe.ZCard(ctx, k.Disabled()), pipe.ZCard(ctx, k.Parked())
	oldestDue := s.askOldestDue(ctx, pipe)
	gates, circuit := pipe.ZRange(ctx, k.Gates(), 0, maxBlockers-1), pipe.HMGet(ctx, k.QueueCircuit(), "opened_at")
	since := Millis(stats.At.Add(-model.LongestSilence))
	parties := map[model.Role]string{model.RoleDispatcher: k.Dispatchers(), model.RolePoller: k.Pollers(), model.RoleWorker: k.Workers()}
	living := SendEach(model.Roles, func(party model.Role) *redis.IntCmd { return pipe.ZCount(ctx, parties[party], since, "+inf") })
	if _, err := pipe.Exec(ctx); err != nil {
		return Gauges{}, fmt.Errorf("read gauges: %w", err)
	}
	g := Gauges{
		Stats: stats, Disabled: disabled.Val(), Parked: parked.Val(), QueueCircuitOpen: Text(circuit.Val()[0]) != "",
		Living: map[model.Role]int64{},
	}
	for i, party := range model.Roles {
		g.Living[party] = living[i].Val()
	}
	if g.OldestDue = oldestDue(); g.OldestDue.After(stats.At) {
		g.OldestDue = time.Time{}
	}
	return g, s.countParked(ctx, gates.Val(), &g)
}

// Gauges adds up the parts of a queue.
func (q QueueReport) Gauges(ctx context.Context) (sum Gauges, err error) {
	err = q.Each(func(part *Store) error {
		gauges, err := part.Report().Gauges(ctx)
		sum.Add(&gauges)
		return err
	})
	return sum, err
}

// Add adds another part. Of instants it keeps the oldest; Living is how many there are where there are fewest.
func (g *Gauges) Add(more *Gauges) {
	g.add(&more.Stats)
	if g.ParkedBy == nil {
		g.ParkedBy = map[string]int64{}
	}
	addUp(g.ParkedBy, more.ParkedBy)
	g.Disabled, g.Parked, g.OpenCircuits = g.Disabled+more.Disabled, g.Parked+more.Parked, g.OpenCircuits+more.OpenCircuits
	g.QueueCircuitOpen = g.QueueCircuitOpen || more.QueueCircuitOpen
	g.OldestDue = earlier(g.OldestDue, more.OldestDue)
	if g.Living == nil {
		g.Living = maps.Clone(more.Living)
	}
	for party, count := range more.Living {
		g.Living[party] = min(g.Living[party], count)
	}
}

// earlier is the first of two instants; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// countParked counts what waits for gates by their kinds.
func (s Report) countParked(ctx context.Context, gates []string, g *Gauges) error {
	g.ParkedBy = map[string]int64{}
	if len(gates) == 0 {
		return nil
	}
	pipe := s.Clients.Read.Pipeline()
	waiting := SendEach(gates, func(gate string) *redis.IntCmd { return pipe.ZCard(ctx, s.Keys.ParkedBy(gate)) })
	if err := ExecReads(ctx, pipe); err != nil {
		return fmt.Errorf("count what is parked: %w", err)
	}
	for i, gate := range gates {
		kind, _ := model.Blocker(gate).Split()
		g.ParkedBy[kind] += waiting[i].Val()
		if kind == model.BlockerCircuit && waiting[i].Val() > 0 {
			g.OpenCircuits++
		}
	}
	return nil
}

// noticedAt is when the first of these entries of the outbox was written, as it says itself; zero: there is none.
func noticedAt(entries []redis.XMessage) time.Time {
	if len(entries) == 0 {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, Text(entries[0].Values["at"]))
	if err != nil { // of somebody else
		at = time.UnixMilli(writtenAt(entries[0].ID))
	}
	return at.UTC()
}

// Liveness reads, at one instant, the last heartbeats of all who serve the queue, and what waits for them. A key of the wrong type counts as
// empty.
func (s Report) Liveness(ctx context.Context) (model.Liveness, error) {
	k, pipe := s.Keys, s.Clients.Read.TxPipeline()
	beats := s.askHeartbeats(ctx, pipe)
	input, output, control := pipe.LLen(ctx, k.Input()), pipe.LLen(ctx, k.Output()), pipe.LLen(ctx, k.Control())
	front, running := pipe.LIndex(ctx, k.Input(), 0), pipe.ZCard(ctx, k.Running())
	oldestDue, deadline := s.askOldestDue(ctx, pipe), pipe.ZRangeWithScores(ctx, k.Running(), 0, 0)
	if err := ExecReads(ctx, pipe); err != nil {
		return model.Liveness{}, fmt.Errorf("read signs of life: %w", err)
	}
	// The clock is read last, so that no heartbeat lies ahead of it.
	now, err := s.Now(ctx)
	if err != nil {
		return model.Liveness{}, err
	}
	signs := model.Liveness{
		Now: now, Queued: input.Val(), Messages: output.Val() + control.Val(), Held: max(0, running.Val()-input.Val()),
		OldestDue: oldestDue(), OldestDeadline: firstScore(deadline.Val()),
	}
	for _, heartbeat := range beats.read() {
		signs.Heartbeat(heartbeat.Of, heartbeat.At)
	}
	return signs, s.readHead(ctx, front.Val(), &signs)
}

// readHeadSample reads when the attempt at the front of the input list was started, unless it is over.
func (s Report) readHead(ctx context.Context, raw string, signs *model.Liveness) error {
	entry, _ := s.Wire().ParseEntry(raw) // what cannot be read is nobody's attempt
	if entry.UID == "" {
		return nil
	}
	fields, err := s.Clients.Read.HMGet(ctx, s.Keys.Model(entry.UID), fieldAttemptUID, "started_at").Result()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return nil
	case err != nil:
		return fmt.Errorf("read the front of the input list: %w", err)
	}
	if Text(fields[0]) == entry.AttemptUID {
		signs.HeadStartedAt, _ = time.Parse(time.RFC3339, Text(fields[1])) // unreadable: unknown
	}
	return nil
}

// askOldestDue returns what tells, once the pipe was executed, since when the oldest model waits that is due next; what is urgent is due too.
func (s Report) askOldestDue(ctx context.Context, pipe redis.Pipeliner) func() time.Time {
	due, run := pipe.ZRangeWithScores(ctx, s.Keys.Due(), 0, 0), pipe.ZRangeWithScores(ctx, s.Keys.Urgent(), 0, 0)
	others := pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: s.Keys.Urgent(), Start: "0", Stop: "+inf", ByScore: true, Count: 1})
	return func() time.Time {
		oldest := firstScore(run.Val())
		if !oldest.IsZero() && oldest.UnixMilli() < 0 {
			oldest = oldest.Add(model.RunAhead)
		}
		return earlier(earlier(firstScore(due.Val()), firstScore(others.Val())), oldest)
	}
}

func firstScore(members []redis.Z) time.Time {
	if len(members) == 0 || members[0].Score > maxScore {
		return time.Time{}
	}
	return time.UnixMilli(int64(members[0].Score)).UTC()
}

// Backlog is what waits in a queue for others than the daemons, and the calls that wait.
type Backlog struct {
	Outbox, Undelivered, Rejected, Wake int64
	OldestNotice                        time.Time
}

// Backlog reads what waits. A key of the wrong type counts as empty.
func (s Report) Backlog(ctx context.Context) (Backlog, error) {
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	rejected, undelivered, wake := pipe.LLen(ctx, k.Rejected()), pipe.LLen(ctx, k.Undelivered()), pipe.LLen(ctx, k.Wake())
	if err := ExecReads(ctx, pipe); err != nil {
		return Backlog{}, fmt.Errorf("read what waits: %w", err)
	}
	outbox, oldest, err := s.undelivered(ctx)
	return Backlog{Outbox: outbox, Undelivered: undelivered.Val(), Rejected: rejected.Val(), Wake: wake.Val(), OldestNotice: oldest}, err
}

// maxCounted is up to how many entries of the outbox are counted one by one. Of more, those that were acknowledged and not trimmed yet count too.
const maxCounted = 1000

// undelivered counts the notices that were not delivered yet: what some group of the outbox has not acknowledged, and what waits in the lines of the
// notifier. It tells of when the oldest of them is. A key of the wrong type counts as empty.
func (s Report) undelivered(ctx context.Context) (count int64, oldest time.Time, err error) {
	first, err := s.firstUnread(ctx)
	if _, misfit := Misfit(err); err != nil && !misfit {
		return 0, time.Time{}, err
	}
	most := int64(maxCounted)
	if first == "" { // nobody has acknowledged any: they all count
		most = 1
	}
	pipe, k := s.Clients.Read.Pipeline(), s.Keys
	recipients, entries := pipe.HKeys(ctx, k.Deliveries()), pipe.XRangeN(ctx, k.Outbox(), cmp.Or(first, "-"), "+", most)
	outbox := pipe.XLen(ctx, k.Outbox()) // last, as miniredis answers it twice where the type is wrong
	if err := ExecReads(ctx, pipe); err != nil {
		return 0, time.Time{}, fmt.Errorf("read the outbox: %w", err)
	}
	if count = int64(len(entries.Val())); count == most {
		count = outbox.Val()
	}
	pipe = s.Clients.Read.Pipeline()
	lines := SendEach(recipients.Val(), func(recipient string) *redis.IntCmd { return pipe.LLen(ctx, k.Notices(recipient)) })
	heads := SendEach(recipients.Val(), func(recipient string) *redis.StringCmd { return pipe.LIndex(ctx, k.Notices(recipient), 0) })
	err = Wrap(ExecReads(ctx, pipe), "read the lines of recipients")
	oldest = noticedAt(entries.Val())
	for i, line := range lines {
		var head struct{ At time.Time }
		_ = json.Unmarshal([]byte(heads[i].Val()), &head) // what cannot be read, or is none, has no time
		count, oldest = count+line.Val(), earlier(oldest, head.At)
	}
	return count, oldest, err
}

// LastRejected reads the reason of the message that was rejected last; empty: there is none or it cannot be read.
func (s Report) LastRejected(ctx context.Context) (string, error) {
	text, err := s.Clients.Read.LIndex(ctx, s.Keys.Rejected(), -1).Result()
	if err != nil && !Missing(err) {
		return "", fmt.Errorf("read the last rejected message: %w", err)
	}
	return readRejected(text).Reason, nil
}
