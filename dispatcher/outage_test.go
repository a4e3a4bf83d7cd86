package dispatcher_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/faces/health"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// away is a store that Redis fails so many times, and then no more. Each failure is seen by met.
type away struct {
	*store.Store
	left int // run goroutine only
	met  func()
	back chan struct{}
}

// Retire is not what is tested: how long it takes is up to the machine.
func (s *away) Retire(context.Context, string) error { return nil }

func (s *away) ReadDue(ctx context.Context, asked store.DueRequest) (store.Due, error) {
	if s.left--; s.left >= 0 {
		s.met()
		return store.Due{}, errors.New("dial tcp 127.0.0.1:6379: connect: connection refused")
	}
	if s.left == -2 {
		close(s.back)
	}
	return s.Store.ReadDue(ctx, asked)
}

func TestAnOutageIsOneFaultInTheLogAndNoProgressAndNoEnd(t *testing.T) {
	t.Parallel()
	b := &bundle{fixture.Live(t, testkit.Miniredis(t)), t}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	checks := health.NewChecks(time.Hour, clock)
	progress := checks.Loop("dispatcher", time.Second, false)
	var text bytes.Buffer
	log := zerolog.New(&text)
	store := &away{Store: b.Store, left: 300, met: func() { now = now.Add(time.Second) }, back: make(chan struct{})}
	d := b.dispatcher(store, dispatcher.Config{Tick: 10 * time.Millisecond, Backoff: time.Millisecond, Log: &log, Clock: clock, Observe: progress.Begin})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	testkit.Await(t, store.back, "the end of the outage")
	stop()
	if err := testkit.Await(t, ended, "the end of the daemon"); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 10 || !strings.Contains(lines[9], `"failures":300,"lasted_ms":299000,"message":"dispatcher: round works again"`) {
		t.Errorf("want 9 lines about 300 failures and one about their end, got\n%s", text.String())
	}
	if state := progress.State(time.Hour); !state.Ready || state.Failures != 0 {
		t.Errorf("want a healthy loop after the outage, got %+v", state)
	}
}

func TestAFaultThatManyModelsShareIsToldInFewLines(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var uids []string
		for i := range 100 {
			uids = append(uids, "m"+strings.Repeat("x", i))
		}
		b.put(uids...)
		b.Redis.Del(context.Background(), b.Store.Keys.Policies)
		var text bytes.Buffer
		log := zerolog.New(&text).Level(zerolog.WarnLevel)
		if round := b.round(b.dispatcher(b.Store, dispatcher.Config{Log: &log})); round.Started != 100 {
			t.Errorf("want all started, got %+v", round)
		}
		if lines := strings.Count(text.String(), "model with a fault"); lines != 7 { // 1, 2, 4 ... 64
			t.Errorf("want 7 lines about 100 models, got %d:\n%s", lines, text.String())
		}
	})
}
