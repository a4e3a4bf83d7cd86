package poller_test

import (
	"slices"
	"strings"
	"testing"
)

func TestCommandsOfAnApplicationDoWhatTheySay(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		steps := []struct {
			command string
			counter string
			field   string
			want    string
		}{
			{put("a"), "create", "refresh_why", "saved: refresh now"},
			{put("a"), "unchanged", "refresh_why", "saved: refresh now"},
			{`{"type":"disable","uid":"a","reason":"by the owner"}`, "disable", "refresh_disabled_user_friendly_reason", "by the owner"},
			{`{"type":"disable","uid":"a","reason":"by the owner"}`, "unchanged", "refresh_disabled_until_update", "1"},
			{`{"type":"enable","uid":"a"}`, "enable", "refresh_why", "enabled: nothing planned, now"},
			{`{"type":"run","uid":"a"}`, "run", "refresh_why", "run by hand"},
			{put("a", `"rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`), "update", "dtstart", "2026-11-21T00:00:00"},
			{`{"type":"remove","uid":"a"}`, "remove", "rev", ""},
			{`{"type":"run","uid":"a"}`, "unknown_model", "rev", ""},
			{`{"type":"put","uid":"b","policy":"nightly"}`, "malformed", "rev", ""},
			{`{"type":"put","uid":"b","rrule":"FREQ=HOURLY;INTERVAL=2;BYHOUR=3"}`, "malformed", "rev", ""},
		}
		for _, step := range steps {
			before := b.Stats()[step.counter]
			b.Command(step.command)
			b.round()
			if after := b.Stats()[step.counter]; after != before+1 {
				t.Errorf("%s: want %s counted once, got %d after %d", step.command, step.counter, after, before)
			}
			if got := b.Model("a")[step.field]; got != step.want {
				t.Errorf("%s: %s: want %q, got %q", step.command, step.field, step.want, got)
			}
		}
	})
}

func TestARunIsRefusedWhileAnAttemptIsInFlightAndForceSupersedesIt(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		first := b.Attempt("a")
		b.Command(`{"type":"run","uid":"a"}`)
		b.round()
		if b.Attempt("a") != first || b.Stats()["busy"] != 1 {
			t.Fatalf("want the running attempt left alone, got %v", b.Stats())
		}
		b.Command(`{"type":"run","uid":"a","force":true}`)
		b.round()
		if entries := b.List(b.Store.Keys.Input); len(entries) != 0 {
			t.Errorf("want the queued attempt taken back, got %q", entries)
		}
		b.dispatch()
		if second := b.Attempt("a"); second == first || second == "" || b.Model("a")["attempt_no"] != "1" {
			t.Errorf("want a new first attempt, got %v", b.Model("a"))
		}
	})
}

func TestASaveDuringAnAttemptStartsASecondOneWhenItEnds(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for _, end := range []string{"success", "failure", "interrupted", "postponed"} {
			b.running(end)
			for range b.List(b.Store.Keys.Input) {
				b.Take()
			}
			b.Command(strings.Replace(put(end), "http://feed", "http://new", 1))
			b.round()
			if hash := b.Model(end); hash["again"] == "" || hash["outdated"] == "" {
				t.Fatalf("%s: want the attempt marked again and outdated, got %v", end, hash)
			}
			b.Say(b.result(end, end))
			b.round()
			if hash := b.Model(end); hash["refresh_at"] != "2026-11-21T07:00:00.000Z" || hash["again"] != "" || hash["attempt_no"] != "" {
				t.Errorf("%s: want a new cycle due at once, got %v", end, hash)
			}
		}
		if stats := b.Stats(); stats["outdated"] != 4 || stats["success"]+stats["failure"]+stats["interrupted"]+stats["postponed"] != 0 {
			t.Errorf("want what was reported about replaced payloads not counted, got %v", stats)
		}
	})
}

func TestASaveGoesIntoTheQueuedEntryInItsPlace(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c")
		before := b.List(b.Store.Keys.Input)
		b.Command(strings.Replace(put("b"), "http://feed", "http://new", 1))
		b.round()
		want := slices.Clone(before)
		want[1] = strings.Replace(before[1], "http://feed", "http://new", 1)
		equal(t, want, b.List(b.Store.Keys.Input))
		if hash := b.Model("b"); hash["again"] != "" || hash["outdated"] != "" {
			t.Errorf("want one attempt, of the new payload, got %v", hash)
		}
	})
}
