package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refreshd/refreshd/internal/lab/bench"
)

// ledger is what the workers write down in one run.
type ledger struct {
	load
	n        int
	from     time.Time     // when the first model was to start; zero: when it began
	finished chan struct{} // closed when all have ended

	mu       sync.Mutex
	attempts []attempt
}

type attempt struct {
	model        int
	began, ended time.Time
}

// seen is what a ledger says in the end.
type seen struct {
	took     time.Duration // until the last ended
	others   time.Duration // until the last ended that was not of the first host
	lastHost time.Duration // until each host had begun
	most     int           // that ran on one host at a time
	late     bench.Spread  // from when each was to start until it began
	refill   bench.Spread  // from the end of an attempt until the next of its host began, while one waited
}

func newLedger(l load, n int) *ledger {
	return &ledger{load: l, n: n, finished: make(chan struct{})}
}

// ask calls start for each model at its time.
func (l *ledger) ask(start func(i int) error) error {
	l.from = time.Now()
	for i := range l.n {
		time.Sleep(time.Until(l.from.Add(l.after(i))))
		if err := start(i); err != nil {
			return err
		}
	}
	return nil
}

// all begins, and returns when all have ended.
func (l *ledger) all(ctx context.Context, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	select {
	case <-l.finished:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do is what a worker does with a model.
func (l *ledger) do(uid string) {
	number, _ := strconv.Atoi(strings.TrimPrefix(uid, uidPrefix)) // it has come from uid
	one := attempt{model: number, began: time.Now()}
	time.Sleep(l.takes(l.host(number, l.n)))
	one.ended = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts = append(l.attempts, one); len(l.attempts) == l.n {
		close(l.finished)
	}
}

func (l *ledger) seen() (s seen) {
	slices.SortFunc(l.attempts, func(a, b attempt) int { return a.began.Compare(b.began) })
	from := l.from
	if from.IsZero() {
		from = l.attempts[0].began
	}
	hosts := map[string][]attempt{}
	var late, refill []time.Duration
	for _, one := range l.attempts {
		host := l.host(one.model, l.n)
		if hosts[host] == nil {
			s.lastHost = one.began.Sub(from)
		}
		hosts[host] = append(hosts[host], one)
		s.took = max(s.took, one.ended.Sub(from))
		if host != hostName(0) {
			s.others = max(s.others, one.ended.Sub(from))
		}
		late = append(late, one.began.Sub(from.Add(l.after(one.model))))
	}
	for _, attempts := range hosts {
		s.most = max(s.most, mostAtATime(attempts))
		refill = append(refill, l.refills(attempts)...)
	}
	s.late, s.refill = spreadIn(late), spreadIn(refill)
	return s
}

// mostAtATime counts those of a host, in the order in which they began.
func mostAtATime(attempts []attempt) (most int) {
	ended := endsOf(attempts)
	over := 0
	for i, one := range attempts {
		for !ended[over].After(one.began) && over < i {
			over++
		}
		most = max(most, i+1-over)
	}
	return most
}

// refills takes all models of a host to have waited from the beginning. Then each end makes room for one more than had places at first.
func (l *ledger) refills(attempts []attempt) (took []time.Duration) {
	for i, ended := range endsOf(attempts) {
		if next := i + l.atATime; l.hosts > 0 && next < len(attempts) {
			took = append(took, attempts[next].began.Sub(ended))
		}
	}
	return took
}

func endsOf(attempts []attempt) []time.Time {
	ended := make([]time.Time, len(attempts))
	for i, one := range attempts {
		ended[i] = one.ended
	}
	slices.SortFunc(ended, time.Time.Compare)
	return ended
}

func spreadIn(all []time.Duration) bench.Spread {
	return *cmp.Or(bench.NewSpread(all), &bench.Spread{})
}
