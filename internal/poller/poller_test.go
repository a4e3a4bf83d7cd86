package poller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/refreshd/refreshd/internal/dispatcher"
	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) { testkit.Main(m) }

// bundle is a poller, a dispatcher that hands out attempts, and the queue between them.
type bundle struct {
	*fixture.Queue
	t testing.TB
}

func setup(t *testing.T, server *testkit.Server) *bundle {
	t.Helper()
	return &bundle{fixture.New(t, server), t}
}

// poller is one with another store, and with its flow if it has one.
func (b *bundle) poller(store poller.Store, config poller.Config) *poller.Poller {
	b.t.Helper()
	if config.Owner == "" {
		config.Owner = "p1"
	}
	rooms := poller.RoomsOf(b.Store)
	rooms.Store = store
	if flow, is := store.(poller.Flow); is {
		rooms.Flow = flow
	}
	p, err := poller.New(rooms, config)
	must(b.t, err)
	return p
}

// round runs one round of a fresh poller named p1.
func (b *bundle) round() poller.Round {
	b.t.Helper()
	return b.roundOf(b.poller(b.Store, poller.Config{}))
}

// obey pushes commands and does a round, as hear does with what workers say.
func (b *bundle) obey(commands ...string) { b.t.Helper(); b.Command(commands...); b.round() }

func (b *bundle) hear(messages ...string) { b.t.Helper(); b.Say(messages...); b.round() }

func (b *bundle) roundOf(p *poller.Poller) poller.Round {
	b.t.Helper()
	round, err := p.RunOnce(context.Background())
	must(b.t, err)
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
	d, err := dispatcher.New(dispatcher.RoomsOf(b.Store), dispatcher.Config{Owner: "d"})
	must(b.t, err)
	must(b.t, check.Only(d.RunOnce(context.Background())))
}

// result renders a message about the running attempt.
func (b *bundle) result(kind, uid string, fields ...string) string {
	b.t.Helper()
	return fixture.Result(kind, uid, b.Attempt(uid), fields...)
}

func both(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Helper()
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) { test(t, setup(t, server)) })
}

func TestEachKindOfMessageIsCountedByItsOwnNameAndTheRestProceeds(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a", "b", "c", "d")
		b.Say(
			b.result("success", "a"),
			b.result("success", "a"), // duplicate
			fixture.Result("success", "b", "somebody-else"),
			"garbage", "", "[]", "{}", `{"type":"success"} {}`,
			fixture.Result("success", "nobody", "x"),
			`{"type":"success","big_table_uid":"b"}`,
			`{"type":"success","big_table_uid":"b","refresh_attempt_uid":"x","request_attempt_uid":"y"}`,
			b.result("dance", "b"),
			b.result("failure", "b", `"reason":"HTTP 503"`),
			b.result("user_friendly_status", "c", `"status":"half"`, `"progress":50`),
			b.result("success", "d", `"changed":false`),
		)
		got := b.round()
		want := poller.Round{Claimed: 15, Applied: 4, Settled: 11, Rejected: 9, Leads: true}
		equal(t, want, got)
		stats := b.Stats()
		counters := map[string]int{
			"create": 4, "start": 4, "success": 2, "success_unchanged": 1, "failure": 1, "status": 1,
			"duplicate": 1, "stale": 1, "malformed": 4, "unknown_model": 1, "no_uid": 3, "unknown_type": 1,
		}
		equal(t, counters, stats)
		if got := len(b.List(b.Store.Keys.Rejected)); got != 9 {
			t.Errorf("want 9 rejected messages, got %d", got)
		}
		left := b.List(b.Store.Keys.Claimed("p1"))
		failIf(t, len(left) != 0, "want nothing claimed any more, got %q", left)
	})
}

func TestARejectedMessageKeepsItsReasonAndItsBytes(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Say("\xff\xfe", `{"type":"success","big_table_uid":"b"}`)
		b.obey(`{"type":"put","uid":"x","polcy":{}}`)
		want := []string{
			`{"at":"2026-11-21T07:00:00.000Z","source":"output","reason":"expected a JSON object in UTF-8, found \"\\xff\\xfe\"","raw_base64":"//4="}`,
			`{"at":"2026-11-21T07:00:00.000Z","source":"output","uid":"b","reason":"refresh_attempt_uid: expected the uid of the attempt, found nothing","raw":"{\"type\":\"success\",\"big_table_uid\":\"b\"}"}`,
			`{"at":"2026-11-21T07:00:00.000Z","source":"control","uid":"x","reason":"polcy: expected one of uid, payload, rrule, timezone, dtstart, refresh, policy, labels, found an unknown field","raw":"{\"type\":\"put\",\"uid\":\"x\",\"polcy\":{}}"}`,
		}
		equal(t, want, b.List(b.Store.Keys.Rejected))
	})
}

func TestAResultAfterTheDeadlineButBeforeAnybodyNoticedCountsAndIsCalledLate(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Clock.Turn(2 * time.Minute)
		b.hear(b.result("success", "a"))
		b.ExpectStats("want one late success", map[string]int{"late": 1, "success": 1})
	})
}

func TestMessagesOfOneModelInOneBatchAreAppliedInOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
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
		failIf(t, hash["user_friendly_status"] != "2 of 2" || hash["progress"] != "100" || hash["refresh_why"] != "retry 1 of 2 at once",
			"want the failure after both statuses, got %v", hash)
		b.ExpectStats("want the late success counted as duplicate", map[string]int{"duplicate": 1, "success": 0})
		history := b.List(b.Store.Keys.History("a"))
		failIf(t, len(history) != 1 || !strings.Contains(history[0], `"worker":"w1"`) || !strings.Contains(history[0], `"reason":"lost the connection"`),
			"want one record with worker and reason, got %q", history)
	})
}

func TestAFloodOfCommandsDoesNotHoldUpResults(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
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
		failIf(t, b.Stats()["success"] != 1, "want the result within five rounds of ten, got %v", b.Stats())
	})
}

func TestABrokenModelKeyHarmsOnlyItsOwnMessage(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("good")
		b.Redis.Set(context.Background(), b.Store.Keys.Model("bad"), "text", 0)
		b.Command(put("bad"))
		b.hear(fixture.Result("success", "bad", "x"), b.result("success", "good"))
		stats := b.Stats()
		failIf(t, stats["success"] != 1 || len(b.List(b.Store.Keys.Claimed("p1"))) != 0,
			"want the good model's success and an empty claimed list, got %v", stats)
		told := b.Store.Keys.Model("bad") + " holds a string, expected a hash"
		if kept := b.List(b.Store.Keys.Rejected); stats["broken_model"] != 2 || len(kept) != 2 || !strings.Contains(kept[0], told) {
			t.Errorf("want both messages kept with the reason %q, got %v %q", told, stats, kept)
		}
	})
}

func TestAHundredMessagesAreABatchUnlessToldOtherwise(t *testing.T) {
	for batch, want := range map[int][]int{0: {100, 100, 30, 0}, 7: {7, 7, 7, 7}, 1000: {230, 0, 0, 0}} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				for range 230 {
					b.Say("garbage")
				}
				p := b.poller(b.Store, poller.Config{Batch: batch})
				var claimed []int
				for range want {
					claimed = append(claimed, b.roundOf(p).Claimed)
				}
				equal(t, want, claimed)
			})
		})
	}
}

func TestWhatFollowsACommandThatWaitsForAKeyKeepsItsOrder(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		k := b.Store.Keys
		b.Redis.Set(t.Context(), k.Commands, "text", 0)
		b.Command(`{"type":"put","uid":"m","payload":{"n":1},"command_id":"c1"}`, `{"type":"put","uid":"m","payload":{"n":2}}`, `{"type":"put","uid":"other"}`)
		for range 2 {
			round := b.round()
			failIf(t, round.Waiting != 2 || round.Left != 2, "want both commands waiting, got %+v", round)
		}
		if waiting := b.List(k.ClaimedCommands); len(waiting) != 2 || !strings.Contains(waiting[0], "c1") || b.Redis.Exists(t.Context(), k.Model("other")).Val() == 0 {
			t.Errorf("want both commands in the lane, in their order, and the other done, got %q", waiting)
		}
		b.Redis.Del(t.Context(), k.Commands)
		b.round()
		payload := b.Redis.Get(t.Context(), k.Payload("m")).Val()
		failIf(t, payload != `{"n":2}` || len(b.List(k.ClaimedCommands)) > 0, "want the last command to count, got %s", payload)
	})
}

func TestStartedMovesTheDeadlineOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Clock.Turn(50 * time.Second)
		b.hear(b.result("started", "a"))
		b.Clock.Turn(5 * time.Second)
		b.hear(b.result("started", "a"))
		got := b.Model("a")["deadline_at"]
		failIf(t, got != "2026-11-21T07:01:50.000Z", "want the deadline a minute after the first started, got %s", got)
		score := b.Scores(b.Store.Keys.Running)["a"]
		failIf(t, score != fixture.Start.Add(110*time.Second).UnixMilli(), "want the running set to follow, got %d", score)
	})
}

// promise stores the policy feeds, which promises some freshness; 0: none.
func (b *bundle) promise(within time.Duration) {
	b.t.Helper()
	p := policy.Default()
	p.Name, p.FreshWithin = "feeds", within
	must(b.t, b.Store.Fleet().PutPolicy(b.t.Context(), p))
}

func TestAPolicyThatPromisesAnotherFreshnessWatchesItsModelsAnewWhateverTheyDo(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.promise(0)
		b.apply(feed("idle", `"rrule":"FREQ=YEARLY"`), feed("disabled"), feed("running"), `{"type":"put","uid":"other"}`, `{"type":"disable","uid":"disabled"}`)
		b.dispatch()
		stale := func() map[string]int64 { return b.Scores(b.Store.Keys.StaleAt) }
		stopIf(t, len(stale()) > 0, "%v are watched, and no policy promises anything", stale())
		b.promise(time.Hour)
		b.walk(b.poller(b.Store, poller.Config{}))
		since := b.Clock.Now()
		for _, uid := range []string{"idle", "disabled", "running"} {
			at := stale()[uid]
			failIf(t, at != since.Add(time.Hour).UnixMilli(), "%s is stale from %s on, want an hour after %s", uid, time.UnixMilli(at).UTC(), since)
		}
		failIf(t, len(stale()) != 3, "%v are watched", stale())
		watches := b.Stats()["watch"]
		b.promise(time.Hour) // nothing else
		must(t, b.Store.Fleet().PutPolicy(t.Context(), policy.Policy{Name: "feeds", FreshWithin: 2 * time.Hour, Timeout: time.Minute, Alignment: policy.AlignPlanned, OnExhausted: policy.GiveUp}))
		b.walk(b.poller(b.Store, poller.Config{}))
		if at := stale()["disabled"]; at != since.Add(2*time.Hour).UnixMilli() || b.Stats()["watch"] != watches+3 {
			t.Errorf("disabled is stale from %s on, after %d watches", time.UnixMilli(at).UTC(), b.Stats()["watch"])
		}
		b.promise(0)
		b.walk(b.poller(b.Store, poller.Config{}))
		failIf(t, len(stale()) > 0, "%v are watched, and nothing is promised any more", stale())
	})
}

// Not to know a policy because it cannot be read, or not to know which there are, is nothing that the command has done wrong.
func TestACommandIsTriedAgainAndNotRejectedWhileRedisDoesNotTellThePolicies(t *testing.T) {
	t.Parallel()
	for command, about := range map[string]string{"HMGET": "hourly", "HKEYS": "bigtables:policies"} {
		b := setup(t, testkit.Miniredis(t))
		b.Server.Mini.Server().SetPreHook(func(peer *server.Peer, name string, args ...string) bool {
			refused := name == command && slices.Contains(args, about)
			if refused {
				peer.WriteError("ERR connection to the shard is lost")
			}
			return refused
		})
		b.Command(`{"type":"put","uid":"a","policy":"hourly"}`)
		p := b.poller(b.Store, poller.Config{})
		_, err := p.RunOnce(context.Background())
		failIf(t, err == nil, "%s: want the error of Redis told, got none", command)
		stats := b.Stats()
		failIf(t, len(stats) > 0, "%s: want the command undecided, got %v", command, stats)
		b.Server.Mini.Server().SetPreHook(nil)
		must(t, b.Redis.HSet(context.Background(), b.Store.Keys.Policies, "hourly", `{"timeout":"1h"}`).Err())
		b.roundOf(p)
		stats = b.Stats()
		failIf(t, stats["create"] != 1, "%s: want the command applied when Redis tells the policies, got %v", command, stats)
	}
}

// overtaken lets something happen between the clock of a round and what it reads.
type overtaken struct {
	*store.Store
	meanwhile func()
}

func (s overtaken) Read(ctx context.Context, uids []string, commands []*model.Command) (*store.Snapshot, error) {
	s.meanwhile()
	return s.Store.Read(ctx, uids, commands)
}

func TestAModelThatBecomesLateWhileAMessageIsHandledIsToldLateOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		put := `{"type":"put","uid":"m1","policy":{"timeout":"1d","fresh_within":"2h","warn_within":"1h"}%s}`
		b.apply(fmt.Sprintf(put, ""))
		b.dispatch()
		become := func() {
			b.Clock.Turn(2 * time.Second)
			b.dispatch()
		}
		b.Clock.Turn(time.Hour - time.Second)
		b.Say(b.result("started", "m1"))
		b.Command(fmt.Sprintf(put, `,"payload":{"n":1}`))
		b.roundOf(b.poller(overtaken{b.Store, become}, poller.Config{}))
		for range 2 {
			b.dispatch()
		}
		stats, fields := b.Stats(), b.Model("m1")
		stopIf(t, stats["started"] != 1 || stats["update"] != 1, "counted is %v", stats)
		if fields["freshness"] != "late" || stats["became_late"] != 1 || stats["fresh_again"] != 0 {
			t.Errorf("the model is %s, told late %d times and fresh again %d times, though it never succeeded", fields["freshness"], stats["became_late"], stats["fresh_again"])
		}
	})
}
