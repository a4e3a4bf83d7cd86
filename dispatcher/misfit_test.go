package dispatcher_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/dispatcher"
)

func TestAStartThatWaitsForAKeyToBeSetRightKeepsTheDispatcherNotBusyAndComesThen(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var log bytes.Buffer
		logger := zerolog.New(&log)
		d := b.dispatcher(b.Store, dispatcher.Config{Log: &logger})
		b.fleet(fourAHost, "t1/a", "t2/b")
		key := b.Store.Keys.Limit("host=t1")
		b.Redis.Set(t.Context(), key, "text", 0)
		round, err := d.RunOnce(t.Context())
		failIf(t, err != nil || round.Started != 1 || round.Blocked != 1, "want one started and one blocked, got %+v, %v", round, err)
		if round, err = d.RunOnce(t.Context()); err != nil || round.Blocked != 1 || round.Sleep == 0 {
			t.Errorf("want the dispatcher to rest, got %+v, %v", round, err)
		}
		if told := key + " holds a string, expected a zset"; !strings.Contains(log.String(), told) {
			t.Errorf("want %q told, got %s", told, log.String())
		}
		b.Redis.Del(t.Context(), key)
		if round, err = d.RunOnce(t.Context()); err != nil || round.Started != 1 {
			t.Errorf("want it started, got %+v, %v", round, err)
		}
	})
}
