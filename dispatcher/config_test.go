package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/refreshd/refreshd/dispatcher"
)

func TestConfigIsRefusedWithTheFieldAndItsRange(t *testing.T) {
	cases := []struct {
		config dispatcher.Config
		want   string
	}{
		{dispatcher.Config{}, ""},
		{dispatcher.Config{Tick: 10 * time.Millisecond}, ""},
		{dispatcher.Config{Batch: -1}, "batch: expected 1 to 1000, found -1"},
		{dispatcher.Config{Batch: 1001}, "batch: expected 1 to 1000, found 1001"},
		{dispatcher.Config{MaxQueued: -5}, "max queued: expected at least 1, found -5"},
		{dispatcher.Config{Tick: time.Hour}, "tick: expected 10ms to 1m, found 1h0m0s"},
		{dispatcher.Config{FullTick: 2 * time.Second}, "full tick: expected 1ms to the tick of 1s, found 2s"},
		{dispatcher.Config{Backoff: -time.Second}, "backoff: expected 1ms to the tick of 1s, found -1s"},
	}
	for _, c := range cases {
		_, err := dispatcher.New(nil, c.config)
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%+v: want %q, got %q", c.config, c.want, got)
		}
	}
}
