package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// between does something once before models are read, when the dispatcher has read which are due.
type between struct {
	dispatcher.Store
	do func()
}

func (s *between) Load(ctx context.Context, uids []string) (map[string]*store.Record, error) {
	if s.do != nil {
		s.do()
		s.do = nil
	}
	return s.Store.Load(ctx, uids)
}

func TestAModelThatIsRemovedBetweenTheReadsOfADispatcherIsNoOrphan(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		s := &between{Store: b.Store}
		d := b.dispatcher(s, dispatcher.Config{})
		remove := func() {
			b.decide(func(*store.Record, time.Time) model.Decision { return model.Decision{Event: model.EventRemove} }, "m")
		}
		for name, prepare := range map[string]func(){
			"due":     func() { b.put("m") },
			"running": func() { b.put("m"); b.round(d); b.Clock.Turn(time.Minute) },
			"growing old": func() {
				b.watch(promise, "m")
				b.round(d)
				b.Clock.Turn(time.Hour)
			},
			"held": func() {
				b.put("m")
				b.hold("h1", "uid=m", b.now().Add(time.Hour))
				b.round(d)
				b.Clock.Turn(time.Hour)
			},
		} {
			b.Server.Flush(t)
			b.Clock.Set(fixture.Start)
			prepare()
			removed := false
			s.do = func() { remove(); removed = true }
			b.round(d)
			left := b.Stats()
			failIf(t, !removed || left["remove"] != 1 || left["orphan"] != 0, "%s: expected a model removed and no orphan, found %v", name, left)
			entries := b.Redis.XRevRangeN(t.Context(), b.Store.Keys.Journal, "+", "-", 1).Val()
			failIf(t, len(entries) != 1 || entries[0].Values["event"] != "remove", "%s: expected the removal last in the journal, found %v", name, entries)
		}
	})
}

func TestWhatIsLeftOfAModelIsAnOrphanOnceHoweverManySetsHaveIt(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bundle, d *dispatcher.Dispatcher) {
		for _, key := range []string{b.Store.Keys.Due, b.Store.Keys.Running, b.Store.Keys.StaleAt} {
			b.Redis.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "ghost"})
		}
		b.round(d)
		failIf(t, len(b.sets("ghost"))+len(b.Scores(b.Store.Keys.StaleAt)) != 0 || b.Stats()["orphan"] != 1, "expected one orphan, found %v", b.Stats())
	})
}
