package poller_test

import (
	"strings"
	"testing"
)

func TestWhatFollowsACommandThatWaitsForAKeyKeepsItsOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		k := b.Store.Keys
		b.Redis.Set(t.Context(), k.Commands, "text", 0)
		b.Command(`{"type":"put","uid":"m","payload":{"n":1},"command_id":"c1"}`, `{"type":"put","uid":"m","payload":{"n":2}}`, `{"type":"put","uid":"other"}`)
		for range 2 {
			if round := b.round(); round.Waiting != 2 || round.Left != 2 {
				t.Errorf("want both commands waiting, got %+v", round)
			}
		}
		if waiting := b.List(k.ClaimedCommands); len(waiting) != 2 || !strings.Contains(waiting[0], "c1") || b.Redis.Exists(t.Context(), k.Model("other")).Val() == 0 {
			t.Errorf("want both commands in the lane, in their order, and the other done, got %q", waiting)
		}
		b.Redis.Del(t.Context(), k.Commands)
		b.round()
		if payload := b.Redis.Get(t.Context(), k.Payload("m")).Val(); payload != `{"n":2}` || len(b.List(k.ClaimedCommands)) > 0 {
			t.Errorf("want the last command to count, got %s", payload)
		}
	})
}
