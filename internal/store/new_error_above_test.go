package store

import (
	"testing"
)

func TestHowManyModelsAFingerprintMayStopUntoldIsSetForTheQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, b *bench) {
		for stored, want := range map[string]int{"": 50, "7": 7, "0": 0} {
			b.redis.Del(t.Context(), b.Keys.Settings)
			if stored != "" {
				b.redis.HSet(t.Context(), b.Keys.Settings, settingNewError, stored)
			}
			q, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
			if err != nil || q.NewErrorAbove() != want || max(0, q.Parts[0].config.NewErrorAbove) != want {
				t.Errorf("%q: expected %d, found %+v, %v", stored, want, q, err)
			}
		}
		b.redis.HSet(t.Context(), b.Keys.Settings, settingNewError, "-1")
		if _, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue}); err == nil {
			t.Error("expected a refusal")
		}
		b.redis.HDel(t.Context(), b.Keys.Settings, settingNewError)
		q, err := Open(t.Context(), b.Clients, Config{Queue: b.Keys.Queue})
		if err != nil || q.SetNewErrorAbove(t.Context(), -1) == nil || q.SetNewErrorAbove(t.Context(), 9) != nil || q.NewErrorAbove() != 9 {
			t.Errorf("expected 9, found %+v, %v", q, err)
		}
	})
}
