package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestEachMinuteIsNotedOnceBeforeItsStartsWhateverOthersDo(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for range 3 { // some begin anew
			one, other := b.dispatcher(b.Store, dispatcher.Config{Owner: "one"}), b.dispatcher(b.Store, dispatcher.Config{Owner: "other"})
			b.put("m" + b.Clock.Now().Format("15"))
			for range 3 {
				b.round(one)
				b.round(other)
				b.Clock.Turn(20 * time.Minute)
			}
		}
		hours, err := b.Redis.HGetAll(t.Context(), b.Store.Keys.Hours).Result()
		failIf(t, err != nil || len(hours) != 5, "want two hours and three minutes of the last one, got %v, %v", hours, err)
		first := hours[fixture.Start.Format("2006-01-02T15:04")]
		failIf(t, !strings.HasPrefix(first, "start=0 "), "want the first minute noted before the first start, got %q", first)
	})
}

func TestADispatcherThatMayNotNoteASampleStartsAllTheSame(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Redis.Set(t.Context(), b.Store.Keys.Hours, "text", 0)
		b.put("m")
		round := b.round(b.dispatcher(b.Store, dispatcher.Config{}))
		failIf(t, round.Started != 1, "want it started, got %+v", round)
	})
}
