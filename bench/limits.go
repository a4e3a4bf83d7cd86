package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// limits is the other work: n models of some hosts are due at once, those of a host behind each other, each attempt takes a worker for a while,
// and no more than so many attempts of a host may run at a time. There are workers enough: nothing else bounds them.
type limits struct {
	hosts, atATime int // 0 hosts: there are no limits
	work           time.Duration
	slow           bool // the first host takes four times as long
}

func (l limits) ideal() float64 { return float64(l.hosts*l.atATime) / l.work.Seconds() }

func (l limits) host(i, n int) string { return hostName(i * l.hosts / n) }

func hostName(i int) string { return fmt.Sprintf("h%03d.example.com", i) }

func (l limits) takes(host string) time.Duration {
	if l.slow && host == hostName(0) {
		return 4 * l.work
	}
	return l.work
}

// seen is what the workers have seen in one run, from when the first of them began.
type seen struct {
	took   time.Duration // until the last ended
	others time.Duration // until the last ended that was not of the first host
	most   int           // that ran on one host at a time
}

// keep is how a contender keeps to limits: it saves n models, lets its workers do them, and returns what these have seen, and what it cost.
type keep func(ctx context.Context, s *server, l limits, n int) (seen, result, error)

// twice lets a contender do the work with hosts that are all alike, and again with a slow one.
func (l limits) twice(keep keep) run {
	return func(ctx context.Context, s *server, n int) (result, error) {
		alike, r, err := keep(ctx, s, l, n)
		if err != nil {
			return r, err
		}
		if err := s.client.FlushAll(ctx).Err(); err != nil {
			return r, err
		}
		uneven := l
		uneven.slow = true
		slow, _, err := keep(ctx, s, uneven, n)
		r.perSecond = float64(n) / alike.took.Seconds()
		r.most = max(alike.most, slow.most)
		r.delay = slow.others - alike.others
		if err == nil && r.most > l.atATime {
			err = fmt.Errorf("expected at most %d attempts of a host at a time, found %d", l.atATime, r.most)
		}
		return r, err
	}
}

type ledger struct {
	limits
	finished chan struct{} // closed when all have ended

	mu      sync.Mutex
	running map[string]int
	left    int
	began   time.Time
	seen    seen
}

func newLedger(l limits, n int) *ledger {
	return &ledger{limits: l, finished: make(chan struct{}), running: map[string]int{}, left: n}
}

func (l *ledger) do(host string) {
	l.begin(host)
	time.Sleep(l.takes(host))
	l.end(host)
}

func (l *ledger) begin(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.IsZero() {
		l.began = time.Now()
	}
	l.running[host]++
	l.seen.most = max(l.seen.most, l.running[host])
}

func (l *ledger) end(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[host]--
	l.seen.took = time.Since(l.began)
	if host != hostName(0) {
		l.seen.others = l.seen.took
	}
	if l.left--; l.left == 0 {
		close(l.finished)
	}
}
