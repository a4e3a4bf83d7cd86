package poller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/poller"
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
			after := b.Stats()[step.counter]
			failIf(t, after != before+1, "%s: want %s counted once, got %d after %d", step.command, step.counter, after, before)
			got := b.Model("a")[step.field]
			failIf(t, got != step.want, "%s: %s: want %q, got %q", step.command, step.field, step.want, got)
		}
	})
}

func TestARunIsRefusedWhileAnAttemptIsInFlightAndForceSupersedesIt(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		first := b.Attempt("a")
		b.Command(`{"type":"run","uid":"a"}`)
		b.round()
		stopIf(t, b.Attempt("a") != first || b.Stats()["busy"] != 1, "want the running attempt left alone, got %v", b.Stats())
		b.Command(`{"type":"run","uid":"a","force":true}`)
		b.round()
		entries := b.List(b.Store.Keys.Input)
		failIf(t, len(entries) != 0, "want the queued attempt taken back, got %q", entries)
		b.dispatch()
		second := b.Attempt("a")
		failIf(t, second == first || second == "" || b.Model("a")["attempt_no"] != "1", "want a new first attempt, got %v", b.Model("a"))
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
		hash := b.Model("b")
		failIf(t, hash["again"] != "" || hash["outdated"] != "", "want one attempt, of the new payload, got %v", hash)
	})
}

func TestAttemptsThatDoNotCountPushNoFailureOutOfTheHistory(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		failed := b.Attempt("a")
		b.Say(b.result("failure", "a", `"reason":"HTTP 503"`))
		b.round()
		for i := range 10 {
			b.Clock.Turn(time.Second)
			b.dispatch()
			b.Say(b.result([]string{"interrupted", "postponed"}[i%2], "a", `"retry_after":0`))
			b.round()
		}
		history := b.List(b.Store.Keys.History("a"))
		if len(history) != 2 || !strings.Contains(history[0], `"is":"postponed"`) || !strings.Contains(history[0], `"times":10`) ||
			!strings.Contains(history[1], fmt.Sprintf(`"uid":%q`, failed)) {
			t.Errorf("want the last of ten that do not count before the failure, got\n%s", strings.Join(history, "\n"))
		}
		b.dispatch()
		b.Command(`{"type":"run","uid":"a","force":true}`)
		b.round()
		b.dispatch()
		b.Say(b.result("interrupted", "a"))
		b.round()
		if history := b.List(b.Store.Keys.History("a")); len(history) != 4 || strings.Contains(history[0], `"times"`) {
			t.Errorf("want a run by hand to end the row, got\n%s", strings.Join(history, "\n"))
		}
	})
}

func TestAResultCountsForWhatItSaysWhateverElseIsWrongWithIt(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("good", "bad", "date", "long", "later", "status")
		b.Clock.Turn(time.Second)
		b.Say(
			b.result("success", "good", `"changed":"true"`),
			b.result("failure", "bad", `"reason":{"code":503}`, `"error_type":"Unavailable"`, `"retry_after":-5`),
			b.result("failure", "date", `"retry_after":"Sat, 21 Nov 2026 07:30:00 GMT"`),
			b.result("failure", "long", `"retry_after":"400d"`),
			b.result("postponed", "later"),
			b.result("user_friendly_status", "status", `"status":"half"`, `"progress":250`),
		)
		round := b.round()
		failIf(t, round.Applied != 6 || round.Rejected != 0, "want six applied, got %+v", round)
		histories := map[string]string{ // what of the entry matters
			"good": `"is":"success"|"ignored":["changed"]`, "bad": `"is":"failure"|"type":"Unavailable"|"ignored":["reason","retry_after"]`,
			"date": `"is":"failure"|"next":1799000`, "long": `"ignored":["retry_after"]|"next":0`,
			"later": `"is":"postponed"|"ignored":["retry_after"]|"next":300000`,
		}
		for uid, want := range histories {
			history := strings.Join(b.List(b.Store.Keys.History(uid)), "\n")
			for _, part := range strings.Split(want, "|") {
				failIf(t, !strings.Contains(history, part), "%s: want %s, got %s", uid, part, history)
			}
		}
		hash := b.Model("status")
		failIf(t, hash["user_friendly_status"] != "half" || hash["progress"] != "", "want the status without progress, got %v", hash)
		stats := b.Stats()
		got := [3]int{stats["success"], stats["failure"], stats["ignored_fields"]}
		failIf(t, got != [3]int{1, 3, 6}, "want one success, three failures and six fields ignored, got %v", got)
	})
}

func TestARejectedMessageNamesItsModelInRedisAndInTheLog(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		var text testkit.Buffer
		log := zerolog.New(&text).Level(zerolog.WarnLevel)
		p := b.poller(b.Store, poller.Config{Log: &log})
		b.Say(
			fixture.Result("dance", "typed", "a1"),
			`{"type":"success","big_table_uid":"torn","refresh_attempt_uid":"x","request_attempt_uid":"y"}`,
			`{"type":"success","big_table_uid":7}`,
			"garbage",
		)
		b.Command(`{"type":"put","uid":"mistyped","polcy":{}}`, `{"type":"jump","uid":"typed"}`, `{"type":"run","uid":"nobody"}`)
		b.roundOf(p)
		entries, err := b.Store.Fleet().Rejected(t.Context())
		must(t, err)
		var uids []string
		for _, entry := range entries {
			uids = append(uids, entry.UID)
		}
		equal(t, []string{"typed", "torn", "", "", "mistyped", "typed", "nobody"}, uids)
		for _, entry := range entries {
			want := `"uid":"` + entry.UID + `"`
			failIf(t, entry.UID != "" && !strings.Contains(text.String(), want), "want a line with %s, got\n%s", want, text.String())
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
			hash := b.Model(end)
			stopIf(t, hash["again"] == "" || hash["outdated"] == "", "%s: want the attempt marked again and outdated, got %v", end, hash)
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

func TestASuccessAfterADisableOrAForcedRunIsStaleAndOnlyWhatWasAnsweredIsADuplicate(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("stopped", "forced")
		answers := []string{b.result("success", "stopped"), b.result("success", "forced")}
		b.Command(`{"type":"disable","uid":"stopped"}`, `{"type":"run","uid":"forced","force":true}`)
		b.round()
		b.Say(answers...)
		b.round()
		stats := b.Stats()
		failIf(t, stats["stale"] != 2 || stats["duplicate"] != 0, "want 2 stale results and no duplicate, got %v", stats)
		b.dispatch()
		answer := b.result("success", "forced")
		b.Say(answer, answer, answers[1])
		b.round()
		stats = b.Stats()
		failIf(t, stats["success"] != 1 || stats["stale"] != 3 || stats["duplicate"] != 1, "want 1 success, 3 stale and 1 duplicate, got %v", stats)
	})
}

func TestAFloodOfRejectedMessagesIsLoggedInFewLines(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text testkit.Buffer
	log := zerolog.New(&text).Level(zerolog.WarnLevel)
	p := b.poller(b.Store, poller.Config{Log: &log})
	for i := range 64 {
		b.Say(fixture.Result("dance"+strings.Repeat("!", i), "m", "a1"))
	}
	b.roundOf(p)
	if lines := strings.Count(text.String(), "message rejected"); lines != 7 { // 1, 2, 4 ... 64
		t.Errorf("want 7 lines, got %d:\n%s", lines, text.String())
	}
}
