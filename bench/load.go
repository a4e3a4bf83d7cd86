package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// load is the other work: n models of some hosts, each attempt takes a worker for a while, and no more than so many attempts of a host may run
// at a time. There are workers enough: nothing else bounds them.
type load struct {
	hosts, atATime int // 0 hosts: all models are of one, nothing is limited, and no attempt takes time
	work           time.Duration
	slow           bool // the first host takes four times as long

	// With neither, all are due at once before a worker is there, those of a host behind each other.
	rate int  // so many become due a second, one after the other, each of a host by chance, for each contender the same
	now  bool // none is due, and then somebody asks for each, of one host after the other in turn
}

// enough is how many workers there are for all hosts together, if nothing is limited.
const enough = 64

func (l load) ideal() float64 { return float64(l.hosts*l.atATime) / l.work.Seconds() }

// none says that plain cycles are measured instead.
func (l load) none() bool { return l.hosts == 0 && l.rate == 0 }

// asked says that nothing starts before the workers are there.
func (l load) asked() bool { return l.rate > 0 || l.now }

func (l load) host(i, n int) string {
	switch {
	case l.hosts == 0:
		return feeds
	case l.rate > 0: // in turn, none would ever have to wait
		return hostName(rand.New(rand.NewPCG(uint64(i), 0)).IntN(l.hosts))
	case l.now:
		return hostName(i % l.hosts)
	default:
		return hostName(i * l.hosts / n)
	}
}

func hostName(i int) string { return fmt.Sprintf("h%03d.example.com", i) }

// queues are what a peer without limits by key needs: a queue for each host, with so many workers.
func (l load) queues() (names []string, workers int) {
	if l.hosts == 0 {
		return []string{feeds}, enough
	}
	for i := range l.hosts {
		names = append(names, hostName(i))
	}
	return names, l.atATime
}

// after is how long after the first one a model is to start.
func (l load) after(i int) time.Duration {
	if l.rate == 0 {
		return 0
	}
	return time.Duration(i) * time.Second / time.Duration(l.rate)
}

func (l load) takes(host string) time.Duration {
	switch {
	case l.hosts == 0:
		return 0
	case l.slow && host == hostName(0):
		return 4 * l.work
	default:
		return l.work
	}
}

// waiting is the share of the models that have to wait, even if each free place is taken at once.
func (l load) waiting(n int) float64 {
	free, waits := map[string][]time.Duration{}, 0
	for i := range n {
		host, at := l.host(i, n), l.after(i)
		if free[host] == nil {
			free[host] = make([]time.Duration, l.atATime)
		}
		next := slices.Min(free[host])
		if next > at {
			waits++
		}
		free[host][slices.Index(free[host], next)] = max(next, at) + l.takes(host)
	}
	return float64(waits) / float64(n)
}

// keep is how a contender bears a load: it saves the models, lets its workers do them, who keep a ledger, and returns what it cost.
type keep func(ctx context.Context, s *server, book *ledger) (result, error)

func (l load) once(keep keep) run {
	return func(ctx context.Context, s *server, n int) (result, error) {
		book := newLedger(l, n)
		r, err := keep(ctx, s, book)
		if err != nil {
			return r, err
		}
		r.seen = book.seen()
		r.perSecond = float64(n) / r.took.Seconds()
		if l.hosts > 0 && r.most > l.atATime {
			err = fmt.Errorf("expected at most %d attempts of a host at a time, found %d", l.atATime, r.most)
		}
		return r, err
	}
}

// twice lets a contender do the work with hosts that are all alike, and again with a slow one.
func (l load) twice(keep keep) run {
	alike := l.once(keep)
	l.slow = true
	uneven := l.once(keep)
	return func(ctx context.Context, s *server, n int) (result, error) {
		r, err := alike(ctx, s, n)
		if err != nil {
			return r, err
		}
		if err := s.client.FlushAll(ctx).Err(); err != nil {
			return r, err
		}
		slow, err := uneven(ctx, s, n)
		r.most = max(r.most, slow.most)
		r.delay = slow.others - r.others
		return r, err
	}
}
