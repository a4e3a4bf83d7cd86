package store

import (
	"context"
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
	Living map[model.Party]int64
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
	gates, circuit := pipe.ZRange(ctx, k.Gates(), 0, mostGates-1), pipe.HMGet(ctx, k.QueueCircuit(), "opened_at")
	since := Millis(stats.At.Add(-model.LongestSilence))
	parties := map[model.Party]string{model.PartyDispatcher: k.Dispatchers(), model.PartyPoller: k.Pollers(), model.PartyWorker: k.Workers()}
	living := SendEach(model.Parties, func(party model.Party) *redis.IntCmd { return pipe.ZCount(ctx, parties[party], since, "+inf") })
	if _, err := pipe.Exec(ctx); err != nil {
		return Gauges{}, fmt.Errorf("read gauges: %w", err)
	}
	g := Gauges{
		Stats: stats, Disabled: disabled.Val(), Parked: parked.Val(), QueueCircuitOpen: Text(circuit.Val()[0]) != "",
		Living: map[model.Party]int64{},
	}
	for i, party := range model.Parties {
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
		kind, _ := model.Gate(gate).Split()
		g.ParkedBy[kind] += waiting[i].Val()
		if kind == model.GateCircuit && waiting[i].Val() > 0 {
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
