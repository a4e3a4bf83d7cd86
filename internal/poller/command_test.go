package poller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/outbox"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
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
			{`{"type":"enable","uid":"a"}`, "enable", "refresh_why", "enabled: nothing planned, starts now"},
			{`{"type":"run","uid":"a"}`, "run", "refresh_why", "run by hand"},
			{put("a", `"rrule":"FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"`), "update", "dtstart", "2026-11-21T00:00:00"},
			{`{"type":"remove","uid":"a"}`, "remove", "rev", ""},
			{`{"type":"run","uid":"a"}`, "unknown_model", "rev", ""},
			{`{"type":"put","uid":"b","policy":"nightly"}`, "malformed", "rev", ""},
			{`{"type":"put","uid":"b","rrule":"FREQ=HOURLY;INTERVAL=2;BYHOUR=3"}`, "malformed", "rev", ""},
		}
		for _, step := range steps {
			before := b.Stats()[step.counter]
			b.obey(step.command)
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
		b.obey(`{"type":"run","uid":"a"}`)
		stopIf(t, b.Attempt("a") != first || b.Stats()["busy"] != 1, "want the running attempt left alone, got %v", b.Stats())
		b.obey(`{"type":"run","uid":"a","force":true}`)
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
		b.obey(strings.Replace(put("b"), "http://feed", "http://new", 1))
		want := slices.Clone(before)
		want[1] = strings.Replace(strings.Replace(before[1], "http://feed", "http://new", 1), "000,\"due_at", "001,\"due_at", 1) // and a higher fence
		equal(t, want, b.List(b.Store.Keys.Input))
		hash := b.Model("b")
		failIf(t, hash["again"] != "" || hash["outdated"] != "", "want one attempt, of the new payload, got %v", hash)
	})
}

func TestAttemptsThatDoNotCountPushNoFailureOutOfTheHistory(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		failed := b.Attempt("a")
		b.hear(b.result("failure", "a", `"reason":"HTTP 503"`))
		for i := range 10 {
			b.Clock.Turn(time.Second)
			b.dispatch()
			b.hear(b.result([]string{"interrupted", "postponed"}[i%2], "a", `"retry_after":0`))
		}
		history := b.List(b.Store.Keys.History("a"))
		if len(history) != 2 || !strings.Contains(history[0], `"is":"postponed"`) || !strings.Contains(history[0], `"times":10`) ||
			!strings.Contains(history[1], fmt.Sprintf(`"uid":%q`, failed)) {
			t.Errorf("want the last of ten that do not count before the failure, got\n%s", strings.Join(history, "\n"))
		}
		b.dispatch()
		b.obey(`{"type":"run","uid":"a","force":true}`)
		b.dispatch()
		b.hear(b.result("interrupted", "a"))
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
			"good": `"ignored":["changed"]`, "bad": `"is":"failure"|"type":"Unavailable"|"ignored":["reason","retry_after"]`,
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
		var text check.Buffer
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
		entries, err := outbox.Of(b.Store).Rejected(t.Context())
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
			b.obey(strings.Replace(put(end), "http://feed", "http://new", 1))
			hash := b.Model(end)
			stopIf(t, hash["again"] == "" || hash["outdated"] == "", "%s: want the attempt marked again and outdated, got %v", end, hash)
			b.hear(b.result(end, end))
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
		b.obey(`{"type":"disable","uid":"stopped"}`, `{"type":"run","uid":"forced","force":true}`)
		b.hear(answers...)
		b.ExpectStats("want 2 stale results and no duplicate", map[string]int{"stale": 2, "duplicate": 0})
		b.dispatch()
		answer := b.result("success", "forced")
		b.hear(answer, answer, answers[1])
		b.ExpectStats("want 1 success, 3 stale and 1 duplicate", map[string]int{"success": 1, "stale": 3, "duplicate": 1})
	})
}

func TestAFloodOfRejectedMessagesIsLoggedInFewLines(t *testing.T) {
	b := setup(t, testkit.Miniredis(t))
	var text check.Buffer
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

// saved is a put of a one-shot whose payload is numbered.
func saved(uid string, n int) string {
	return fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"n":%d}}`, uid, n)
}

func (b *bundle) payload(uid string) string {
	return b.Redis.Get(context.Background(), b.Store.Keys.Payload(uid)).Val()
}

// The next leader begins with the work that the dead one left.
func TestTheCommandsOfADeadPollerComeBeforeNewerOnes(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
		_, err := dead.RunOnce(t.Context())
		stopIf(t, !errors.Is(err, errRedis), "want a crash, got %v", err)
		b.Command(saved("a", 2))
		other := b.poller(b.Store, poller.Config{Owner: "other", Lease: 10 * time.Second})
		b.Clock.Turn(9999 * time.Millisecond)
		round := b.roundOf(other)
		failIf(t, round.Leads, "want the commands left to their leader within the lease")
		b.Clock.Turn(time.Millisecond)
		round = b.roundOf(other)
		failIf(t, round.Claimed != 1 || !round.Leads, "want the older command finished first, got %+v", round)
		got := b.payload("a")
		failIf(t, got != `{"n":1}`, "want the older save, got %s", got)
		b.roundOf(other)
		got = b.payload("a")
		failIf(t, got != `{"n":2}`, "want the later save, got %s", got)
	})
}

// A poller that was only paused finds that its commands are another's now, even one that was pushed again, word for word.
func TestAPollerThatHasLostTheLaneAppliesNoCommand(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		other := b.poller(b.Store, poller.Config{Owner: "other"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(other)
			b.Command(saved("a", 2))
			b.Command(saved("a", 1))
			_, err := b.Store.Claim(t.Context(), "other", store.Holding{}, 100, time.Minute)
			failIf(t, err != nil, "%v", err)
		}
		paused := b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "paused"})
		round := b.roundOf(paused)
		failIf(t, round.Applied != 0 || round.Left != 0, "want nothing applied by the paused one, got %+v", round)
		commands := b.List(b.Store.Keys.ClaimedCommands)
		failIf(t, len(commands) != 2, "want the two later commands left alone, got %q", commands)
		b.roundOf(other)
		if got := b.payload("a"); got != `{"n":1}` || b.Stats()["update"] != 2 {
			t.Errorf("want each command applied once, got %s and %v", got, b.Stats())
		}
	})
}

// One connection saves every model five times and removes every third one, while three pollers share the work.
func TestAStormOfCommandsLeavesEachModelAsItWasLastSaid(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		const models, saves, pollers = 60, 5, 3
		b := &bundle{fixture.Live(t, server), t}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range pollers {
			p := b.poller(b.Store, poller.Config{Owner: fmt.Sprint("p", i), Batch: 4, Tick: 10 * time.Millisecond})
			running.Go(func() { _ = p.Run(ctx) })
		}
		for n := range saves {
			for i := range models {
				b.Command(saved(fmt.Sprint("m", i), n))
			}
		}
		for i := 0; i < models; i += 3 {
			b.Command(`{"type":"remove","uid":"m` + fmt.Sprint(i) + `"}`)
		}
		check.Eventually(t, "all commands are applied", func() bool {
			return len(b.List(b.Store.Keys.Control))+len(b.List(b.Store.Keys.ClaimedCommands)) == 0
		})
		stop()
		running.Wait()
		last := fmt.Sprintf(`{"n":%d}`, saves-1)
		for i := range models {
			uid, want := fmt.Sprint("m", i), last
			if i%3 == 0 {
				want = ""
			}
			got := b.payload(uid)
			failIf(t, got != want, "%s: want %q, got %q", uid, want, got)
		}
		rejected := b.List(b.Store.Keys.Rejected)
		failIf(t, len(rejected) > 0, "want nothing rejected, got %s", strings.Join(rejected, "\n"))
	})
}

// A second poller that finds newer commands leaves them to the one that is busy with older ones.
func TestCommandsAreAppliedInTheOrderInWhichTheyWerePushed(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(saved("a", 1))
		b.Command(`{"type":"put","uid":"b"}`)
		first := b.poller(b.Store, poller.Config{Owner: "first"})
		second := b.poller(b.Store, poller.Config{Owner: "second"})
		meanwhile := func() {
			b.Command(saved("a", 2))
			b.Command(`{"type":"remove","uid":"b"}`)
			round := b.roundOf(second)
			failIf(t, round.Claimed != 0 || round.Leads, "want nothing claimed by the second, got %+v", round)
		}
		b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "first"}))
		b.roundOf(second)
		b.roundOf(first)
		got := b.payload("a")
		failIf(t, got != `{"n":2}`, "want the later save, got %s", got)
		failIf(t, len(b.Model("b")) > 0, "want the model removed")
	})
}
