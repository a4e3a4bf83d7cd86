package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// overlapped is a store that commits a part when the one behind it is encoded.
type overlapped struct {
	*store.Store
	encoded chan struct{}
	commits int
}

func (s *overlapped) Encode(batch *store.Batch) {
	s.Store.Encode(batch)
	s.encoded <- struct{}{}
}

func (s *overlapped) Commit(ctx context.Context, batch store.Batch) ([]store.Code, error) {
	s.commits++
	for i := 0; s.commits == 1 && i < 2; i++ { // its own is the first
		select {
		case <-s.encoded:
		case <-time.After(10 * time.Second):
			return nil, errors.New("expected a part encoded while the one before it is committed, found none")
		}
	}
	return s.Store.Commit(ctx, batch)
}

func TestAPartIsEncodedWhileTheOneBeforeItIsCommitted(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.hold("h1", "tenant=nobody", fixture.Start.Add(time.Minute)) // more is read than may start, as some of it may be parked
		var uids []string
		for i := range 150 {
			uids = append(uids, fmt.Sprintf("m%03d", i))
		}
		b.put(uids...)
		s := &overlapped{Store: b.Store, encoded: make(chan struct{}, 10)}
		round := b.round(b.dispatcher(s, dispatcher.Config{}))
		failIf(t, round.Started != 100 || s.commits != 2, "want 100 started in two parts, got %+v in %d", round, s.commits)
	})
}
