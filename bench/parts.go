package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/lab/bench"
	"github.com/refreshd/refreshd/internal/store"
)

// runOnTwo is a run on two servers, half of the work on each.
type runOnTwo func(ctx context.Context, pair []*server, n int) (result, error)

// onTwo gives a contender two empty servers of its own, instead of the one that all share.
func (p plan) onTwo(dir string, do runOnTwo, args ...string) run {
	return func(ctx context.Context, _ *server, n int) (r result, err error) {
		var pair []*server
		for range 2 {
			s, err := startServer(ctx, p.server, dir, args...)
			if err != nil {
				return r, err
			}
			defer s.stop()
			pair = append(pair, s)
		}
		return do(ctx, pair, n)
	}
}

// refreshdParts has a queue of two parts, each on a master of a cluster. One dispatcher and one poller serve both parts; each part has a worker.
// All is as in refreshd bench, which knows one part only.
func refreshdParts(program string) runOnTwo {
	return func(ctx context.Context, masters []*server, n int) (r result, err error) {
		if err := join(ctx, masters); err != nil {
			return r, fmt.Errorf("make a cluster: %w", err)
		}
		d := daemons{program: program, url: "redis-cluster://" + masters[0].addr}
		if err := d.saveDue(ctx, n); err != nil {
			return r, err
		}
		var took, busy time.Duration
		r, err = around(ctx, n, func() (err error) {
			took, err = d.drain(ctx, n)
			busy = d.end()
			return err
		}, masters...)
		r.perSecond, r.processMicros = float64(n)/took.Seconds(), micros(busy, n)
		return r, err
	}
}

// join deals out the slots by hand: those of {bigtables:0} and {bigtables:1}, 9212 and 13277, both lie in the upper half.
func join(ctx context.Context, masters []*server) error {
	one, two := masters[0], masters[1]
	host, port, _ := net.SplitHostPort(one.addr)
	err := errors.Join(
		one.client.ClusterAddSlotsRange(ctx, 0, 12287).Err(),
		two.client.ClusterAddSlotsRange(ctx, 12288, 16383).Err(),
		two.client.Do(ctx, "CLUSTER", "MEET", host, port, one.bus).Err(),
	)
	waits := func(m *server) bool { return !strings.Contains(m.client.ClusterInfo(ctx).Val(), "cluster_state:ok") }
	for range 500 {
		if err != nil || !slices.ContainsFunc(masters, waits) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("expected both masters to serve within 10 s")
}

// saveDue saves n models and returns when they are due.
func (d *daemons) saveDue(ctx context.Context, n int) error {
	if err := d.say(ctx, "", "queue", "create", "--parts", "2"); err != nil {
		return err
	}
	due := time.Now().Add(5*time.Second + time.Duration(n)*250*time.Microsecond).Truncate(time.Second)
	policy := due.UTC().Format(`{"name":"bench","rrule":"FREQ=HOURLY","dtstart":"2006-01-02T15:04:05","timeout":"30m",`) +
		`"retries":["1m","2m","5m","5m","10m","10m","10m","20m","20m","30m"]}`
	err := d.save(ctx, policy, "planned", n, func(int) string { return feeds })
	left := time.Until(due)
	if err == nil && left < 0 { // some wait for an hour
		err = fmt.Errorf("expected the models to be saved before they are due, found it to take %s longer", -left)
	}
	time.Sleep(left)
	return err
}

// drain starts a dispatcher and a poller, and returns how long it takes until every model was refreshed once.
func (d *daemons) drain(ctx context.Context, n int) (time.Duration, error) {
	queue, clients, err := store.Dial(ctx, d.url, store.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = clients.Close() }()
	models, took := map[*store.Store]int{}, make([]time.Duration, len(queue.Parts))
	for i := range n {
		models[queue.Of(uid(i))]++
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := d.start(stop, "dispatcher", "poller"); err != nil {
		return 0, err
	}
	started := func() (bench.Stop, error) { return func() (time.Duration, error) { return 0, nil }, nil }
	var working sync.WaitGroup
	for i, part := range queue.Parts {
		working.Go(func() {
			b := bench.Bench{Store: part, Redis: clients.Write, Now: time.Now}
			pass, err := b.Drain(ctx, bench.Plan{Models: models[part], Workers: 1, Start: started})
			if took[i] = pass.Took; err != nil {
				stop(err)
			}
		})
	}
	working.Wait()
	return slices.Max(took), context.Cause(ctx)
}
