package poller_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
)

// away is a store that Redis fails so many times, and then no more. Each failure is seen by met.
type away struct {
	*store.Store
	left int // run goroutine only
	met  func()
	back chan struct{}
}

func (s *away) Claim(ctx context.Context, owner string, limit int, lease time.Duration) (store.Claim, error) {
	if s.left--; s.left >= 0 {
		s.met()
		return store.Claim{}, errors.New("LOADING Redis is loading the dataset in memory")
	}
	if s.left == -2 {
		close(s.back)
	}
	return s.Store.Claim(ctx, owner, limit, lease)
}

// Resign has all the time of the test: a tick of 10 ms may be over before Redis answers, which is another fault in the log.
func (s *away) Resign(ctx context.Context, owner string) error {
	return s.Store.Resign(context.WithoutCancel(ctx), owner)
}

func TestAnOutageIsOneFaultInTheLogAndNoProgressAndNoEnd(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	progress := health.NewChecks(time.Hour, clock).Loop("poller", time.Second, false)
	var text bytes.Buffer
	log := zerolog.New(&text)
	store := &away{Store: b.Store, left: 300, met: func() { now = now.Add(time.Second) }, back: make(chan struct{})}
	p, err := poller.New(store, poller.Config{Tick: 10 * time.Millisecond, Backoff: time.Millisecond, Log: &log, Clock: clock, Observe: progress.Begin})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	testkit.Await(t, store.back, "the end of the outage")
	stop()
	if err := testkit.Await(t, ended, "the end of the daemon"); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 10 || !strings.Contains(lines[9], `"failures":300,"lasted_ms":299000,"message":"poller: round works again"`) {
		t.Errorf("want 9 lines about 300 failures and one about their end, got\n%s", text.String())
	}
	if state := progress.State(time.Hour); !state.Ready || state.Failures != 0 {
		t.Errorf("want a healthy loop after the outage, got %+v", state)
	}
}
