package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/dispatcher"
	"github.com/refreshd/refreshd/internal/queuetest"
	"github.com/refreshd/refreshd/internal/redistest"
	"github.com/refreshd/refreshd/poller"
	"github.com/refreshd/refreshd/scripts"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// bundle is a poller, a dispatcher that hands out attempts, and the queue between them.
type bundle struct {
	*queuetest.Rig
	t testing.TB
}

func setup(t *testing.T, server *redistest.Server) *bundle {
	t.Helper()
	return &bundle{queuetest.New(t, server), t}
}

func (b *bundle) poller(store poller.Store, config poller.Config) *poller.Poller {
	b.t.Helper()
	if config.Owner == "" {
		config.Owner = "p1"
	}
	p, err := poller.New(store, config)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// round runs one round of a fresh poller named p1.
func (b *bundle) round() poller.Round {
	b.t.Helper()
	return b.roundOf(b.poller(b.Store, poller.Config{}))
}

func (b *bundle) roundOf(p *poller.Poller) poller.Round {
	b.t.Helper()
	round, err := p.RunOnce(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return round
}

// running puts one-shots with a timeout of a minute and retries after 0 s and 30 s, and hands out their first attempts.
func (b *bundle) running(uids ...string) {
	b.t.Helper()
	for _, uid := range uids {
		b.Command(put(uid))
	}
	b.round()
	b.dispatch()
}

func put(uid string, fields ...string) string {
	text := fmt.Sprintf(`{"type":"put","uid":%q,"payload":{"input_url":"http://feed/%s"},"policy":{"timeout":"1m","retries":[0,"30s"],"on_exhausted":"give_up"}`, uid, uid)
	for _, field := range fields {
		text += "," + field
	}
	return text + "}"
}

func (b *bundle) dispatch() {
	b.t.Helper()
	d, err := dispatcher.New(b.Store, dispatcher.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := d.RunOnce(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// result renders a message about the running attempt.
func (b *bundle) result(kind, uid string, fields ...string) string {
	b.t.Helper()
	return queuetest.Result(kind, uid, b.Attempt(uid), fields...)
}

func TestEachKindOfMessageIsCountedByItsOwnNameAndTheRestProceeds(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a", "b", "c", "d")
		b.Say(
			b.result("success", "a"),
			b.result("success", "a"), // duplicate
			queuetest.Result("success", "b", "somebody-else"),
			"garbage", "", "[]", "{}", `{"type":"success"} {}`,
			queuetest.Result("success", "nobody", "x"),
			`{"type":"success","big_table_uid":"b"}`,
			`{"type":"success","big_table_uid":"b","refresh_attempt_uid":"x","request_attempt_uid":"y"}`,
			b.result("dance", "b"),
			b.result("failure", "b", `"reason":"HTTP 503"`),
			b.result("user_friendly_status", "c", `"status":"half"`, `"progress":50`),
			b.result("success", "d", `"changed":false`),
		)
		got := b.round()
		want := poller.Round{Claimed: 15, Applied: 4, Settled: 11, Rejected: 9}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		stats := b.Stats()
		counters := map[string]int{
			"create": 4, "start": 4, "success": 2, "success_unchanged": 1, "failure": 1, "status": 1,
			"duplicate": 1, "stale": 1, "malformed": 4, "unknown_model": 1, "no_uid": 3, "unknown_type": 1,
		}
		if diff := cmp.Diff(counters, stats); diff != "" {
			t.Error(diff)
		}
		if got := len(b.List(b.Store.Keys.Rejected())); got != 9 {
			t.Errorf("want 9 rejected messages, got %d", got)
		}
		if left := b.List(b.Store.Keys.Claimed("p1")); len(left) != 0 {
			t.Errorf("want nothing claimed any more, got %q", left)
		}
	})
}

func TestARejectedMessageKeepsItsReasonAndItsBytes(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.Say("\xff\xfe", `{"type":"success","big_table_uid":"b"}`)
		b.Command(`{"type":"put","uid":"x","polcy":{}}`)
		b.round()
		want := []string{
			`{"at":"2026-11-21T07:00:00.000Z","source":"output","reason":"expected a JSON object, found \"\\xff\\xfe\"","raw_base64":"//4="}`,
			`{"at":"2026-11-21T07:00:00.000Z","source":"output","reason":"refresh_attempt_uid: expected the uid of the attempt, found nothing","raw":"{\"type\":\"success\",\"big_table_uid\":\"b\"}"}`,
			`{"at":"2026-11-21T07:00:00.000Z","source":"control","reason":"polcy: expected one of uid, payload, rrule, timezone, dtstart, refresh, policy, found an unknown field","raw":"{\"type\":\"put\",\"uid\":\"x\",\"polcy\":{}}"}`,
		}
		if diff := cmp.Diff(want, b.List(b.Store.Keys.Rejected())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAResultAfterTheDeadlineButBeforeAnybodyNoticedCountsAndIsCalledLate(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		b.Clock.Turn(2 * time.Minute)
		b.Say(b.result("success", "a"))
		b.round()
		if stats := b.Stats(); stats["late"] != 1 || stats["success"] != 1 {
			t.Errorf("want one late success, got %v", stats)
		}
	})
}

func TestMessagesOfOneModelInOneBatchAreAppliedInOrder(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		b.Clock.Turn(40 * time.Second)
		b.Say(
			b.result("started", "a", `"worker":"w1"`),
			b.result("user_friendly_status", "a", `"status":"1 of 2"`),
			b.result("user_friendly_status", "a", `"status":"2 of 2"`, `"progress":100`),
			b.result("failure", "a", `"reason":"lost the connection"`),
			b.result("success", "a"),
		)
		b.round()
		hash := b.Model("a")
		if hash["user_friendly_status"] != "2 of 2" || hash["progress"] != "100" || hash["refresh_why"] != "retry 1/2 at once" {
			t.Errorf("want the failure after both statuses, got %v", hash)
		}
		if stats := b.Stats(); stats["duplicate"] != 1 || stats["success"] != 0 {
			t.Errorf("want the late success counted as duplicate, got %v", stats)
		}
		history := b.List(b.Store.Keys.History("a"))
		if len(history) != 1 || !strings.Contains(history[0], `"worker":"w1"`) || !strings.Contains(history[0], `"reason":"lost the connection"`) {
			t.Errorf("want one record with worker and reason, got %q", history)
		}
	})
}

func TestStartedMovesTheDeadlineOnce(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		b.Clock.Turn(50 * time.Second)
		b.Say(b.result("started", "a"))
		b.round()
		b.Clock.Turn(5 * time.Second)
		b.Say(b.result("started", "a"))
		b.round()
		if got := b.Model("a")["deadline_at"]; got != "2026-11-21T07:01:50.000Z" {
			t.Errorf("want the deadline a minute after the first started, got %s", got)
		}
		if score := b.Scores(b.Store.Keys.Running())["a"]; score != queuetest.Start.Add(110*time.Second).UnixMilli() {
			t.Errorf("want the running set to follow, got %d", score)
		}
	})
}

func TestCommandsOfAnApplicationDoWhatTheySay(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
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
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		first := b.Attempt("a")
		b.Command(`{"type":"run","uid":"a"}`)
		b.round()
		if b.Attempt("a") != first || b.Stats()["busy"] != 1 {
			t.Fatalf("want the running attempt left alone, got %v", b.Stats())
		}
		b.Command(`{"type":"run","uid":"a","force":true}`)
		b.round()
		if entries := b.List(b.Store.Keys.Input()); len(entries) != 0 {
			t.Errorf("want the queued attempt taken back, got %q", entries)
		}
		b.dispatch()
		if second := b.Attempt("a"); second == first || second == "" || b.Model("a")["attempt_no"] != "1" {
			t.Errorf("want a new first attempt, got %v", b.Model("a"))
		}
	})
}

func TestASaveDuringAnAttemptStartsASecondOneWhenItEnds(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		for _, end := range []string{"success", "failure", "interrupted"} {
			b.running(end)
			b.Command(strings.Replace(put(end), "http://feed", "http://new", 1))
			b.round()
			if b.Model(end)["again"] == "" {
				t.Fatalf("%s: want the attempt marked again, got %v", end, b.Model(end))
			}
			b.Say(b.result(end, end))
			b.round()
			if hash := b.Model(end); hash["refresh_at"] != "2026-11-21T07:00:00.000Z" || hash["again"] != "" || hash["attempt_no"] != "" {
				t.Errorf("%s: want a new cycle due at once, got %v", end, hash)
			}
		}
	})
}

// stored wraps a store with something that happens between reading the models and applying the decisions.
type stored struct {
	*scripts.Store
	meanwhile func()
	lost      bool // the reply of the next Apply is lost
	crash     bool // the next Apply does not reach Redis
}

var errRedis = errors.New("redis is gone")

func (s *stored) Apply(ctx context.Context, transitions []*scripts.Transition, owner string, maxQueued int, now time.Time) ([]scripts.Code, error) {
	if s.meanwhile != nil {
		meanwhile := s.meanwhile
		s.meanwhile = nil
		meanwhile()
	}
	if s.crash {
		s.crash = false
		return nil, errRedis
	}
	codes, err := s.Store.Apply(ctx, transitions, owner, maxQueued, now)
	if s.lost {
		s.lost = false
		return nil, errRedis
	}
	return codes, err
}

func TestACrashBeforeApplyingReplaysTheBatch(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a", "b")
		b.Say(b.result("success", "a"), "garbage", b.result("failure", "b"))
		p := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{})
		if _, err := p.RunOnce(context.Background()); !errors.Is(err, errRedis) {
			t.Fatalf("want the crash told, got %v", err)
		}
		if left := len(b.List(b.Store.Keys.Claimed("p1"))); left != 3 {
			t.Fatalf("want 3 messages still claimed, got %d", left)
		}
		b.roundOf(p)
		stats := b.Stats()
		if stats["success"] != 1 || stats["failure"] != 1 || stats["malformed"] != 1 || stats["duplicate"] != 0 {
			t.Errorf("want each message applied once, got %v", stats)
		}
	})
}

func TestALostReplyAppliesNothingTwice(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a", "b")
		b.Say(b.result("success", "a"))
		b.Command(`{"type":"run","uid":"b","force":true}`)
		p := b.poller(&stored{Store: b.Store, lost: true}, poller.Config{})
		if _, err := p.RunOnce(context.Background()); !errors.Is(err, errRedis) {
			t.Fatalf("want the lost reply told, got %v", err)
		}
		before := b.Server.Dump(t)
		if round := b.roundOf(p); round.Claimed != 0 {
			t.Errorf("want nothing left to claim, got %+v", round)
		}
		after := b.Server.Dump(t)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("want nothing changed by the second round:\n%s", diff)
		}
	})
}

func TestAMessageIsDecidedAgainWhenItsModelChangedMeanwhile(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a", "b")
		b.Say(b.result("started", "a"), b.result("success", "a"), b.result("success", "a"), b.result("success", "b"))
		other := b.poller(b.Store, poller.Config{Owner: "p2"})
		meanwhile := func() {
			b.Command(strings.Replace(put("a"), "http://feed", "http://new", 1))
			b.roundOf(other)
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{}))
		if diff := cmp.Diff(poller.Round{Claimed: 4, Applied: 3, Settled: 1}, round); diff != "" {
			t.Error(diff)
		}
		if hash := b.Model("a"); hash["refresh_why"] != "saved while running: again" || hash["last_success_at"] == "" {
			t.Errorf("want the success on top of the save, got %v", hash)
		}
		if stats := b.Stats(); stats["duplicate"] != 1 || stats["success"] != 2 {
			t.Errorf("want 2 successes and 1 duplicate, got %v", stats)
		}
	})
}

func TestTheClaimedMessagesOfADeadPollerAreAdopted(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a", "b")
		b.Say(b.result("success", "a"), b.result("success", "b"), "garbage")
		dead := b.poller(&stored{Store: b.Store, crash: true}, poller.Config{Owner: "dead"})
		if _, err := dead.RunOnce(context.Background()); err == nil {
			t.Fatal("want a crash")
		}
		heir := b.poller(b.Store, poller.Config{Owner: "heir", Lease: 10 * time.Second})
		b.Clock.Turn(9999 * time.Millisecond)
		b.roundOf(heir)
		if got := len(b.List(b.Store.Keys.Claimed("dead"))); got != 3 {
			t.Fatalf("want nothing adopted within the lease, got %d left", got)
		}
		b.Clock.Turn(3 * time.Second)
		b.roundOf(heir) // adopts
		b.roundOf(heir) // applies
		if stats := b.Stats(); stats["success"] != 2 || stats["malformed"] != 1 {
			t.Errorf("want every message applied once, got %v", stats)
		}
		if owners := b.Scores(b.Store.Keys.Pollers()); owners["dead"] != 0 || owners["heir"] == 0 {
			t.Errorf("want only the heir known, got %v", owners)
		}
	})
}

func TestAPollerThatWasOnlyPausedAppliesNothingThatAnotherAdopted(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		b.Say(b.result("failure", "a"), "garbage")
		heir := b.poller(b.Store, poller.Config{Owner: "heir"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(heir)
			b.roundOf(heir)
			b.dispatch() // the retry: the paused poller's decision would now hit a new attempt
		}
		round := b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "paused"}))
		if round.Applied+round.Settled+round.Left != 0 {
			t.Errorf("want nothing done by the paused poller, got %+v", round)
		}
		if stats := b.Stats(); stats["failure"] != 1 || stats["malformed"] != 1 || stats["start"] != 2 {
			t.Errorf("want one failure, one rejected message and two starts, got %v", stats)
		}
	})
}

func TestACommandThatAnotherPollerAdoptedIsNotObeyedTwice(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		b.Command(`{"type":"run","uid":"a","force":true}`)
		heir := b.poller(b.Store, poller.Config{Owner: "heir"})
		meanwhile := func() {
			b.Clock.Turn(time.Minute / 2)
			b.roundOf(heir)
			b.roundOf(heir)
			b.dispatch()
		}
		b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{Owner: "paused"}))
		if stats := b.Stats(); stats["run"] != 1 || stats["start"] != 2 || b.Attempt("a") == "" {
			t.Errorf("want one run and its attempt left alone, got %v", stats)
		}
	})
}

func TestAFloodOfCommandsDoesNotHoldUpResults(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("a")
		for i := range 50 {
			b.Command(put(fmt.Sprint("m", i)))
		}
		for range 20 {
			b.Say("garbage")
		}
		b.Say(b.result("success", "a"))
		p := b.poller(b.Store, poller.Config{Batch: 10})
		for range 5 {
			b.roundOf(p)
		}
		if b.Stats()["success"] != 1 {
			t.Errorf("want the result within five rounds of ten, got %v", b.Stats())
		}
	})
}

func TestABrokenModelKeyHarmsOnlyItsOwnMessage(t *testing.T) {
	redistest.Both(t, func(t *testing.T, server *redistest.Server) {
		b := setup(t, server)
		b.running("good")
		b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		b.Command(put("bad"))
		b.Say(queuetest.Result("success", "bad", "x"), b.result("success", "good"))
		b.round()
		stats := b.Stats()
		if stats["success"] != 1 || len(b.List(b.Store.Keys.Claimed("p1"))) != 0 {
			t.Errorf("want the good model's success and an empty claimed list, got %v", stats)
		}
	})
}
