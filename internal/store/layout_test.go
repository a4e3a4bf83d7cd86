package store

import (
	"strconv"
	"strings"
	"testing"
)

func TestAQueueOfANewerLayoutIsRefusedWithWordsBeforeAllElse(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		open := func() (*Queue, error) { return Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}) }
		for _, stored := range []string{"", "1"} {
			if stored != "" {
				b.redis.HSet(t.Context(), b.Keys.Settings, settingLayout, stored)
			}
			if q, err := open(); err != nil || q.Layout != 1 {
				t.Errorf("%q: expected layout 1, found %+v, %v", stored, q, err)
			}
		}
		newer := strconv.Itoa(Layout + 1)
		b.redis.HSet(t.Context(), b.Keys.Settings, settingLayout, newer, settingParts, "what nobody knows yet")
		_, err := open()
		want := b.Keys.Settings + " layout: expected at most " + strconv.Itoa(Layout) + ", found " + newer + ": a newer release stores this queue; upgrade this binary"
		if err == nil || err.Error() != want {
			t.Errorf("expected %s, found %v", want, err)
		}
		if err := Create(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}, 2); err == nil || !strings.Contains(err.Error(), "upgrade this binary") {
			t.Errorf("expected that nothing is created in it, found %v", err)
		}
		for _, stored := range []string{"0", "-1", "one", ""} {
			b.redis.HSet(t.Context(), b.Keys.Settings, settingLayout, stored)
			if _, err := open(); err == nil || !strings.Contains(err.Error(), "layout: expected a whole number") {
				t.Errorf("%q: expected a refusal, found %v", stored, err)
			}
		}
	})
}
