package poller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/report"
	"github.com/refreshd/refreshd/internal/testkit"
)

const here = "bigtables:reply:here"

// asking adds fields to a command that ask for an answer on a list.
func asking(command, replyTo string, fields ...string) string {
	command = strings.TrimSuffix(command, "}") + fmt.Sprintf(`,"reply_to":%q`, replyTo)
	for _, field := range fields {
		command += "," + field
	}
	return command + "}"
}

// expectReplies wants these replies on a list, without their instants.
func (b *bundle) expectReplies(list string, want ...string) {
	b.t.Helper()
	var got []string
	for _, text := range b.List(list) {
		got = append(got, strings.Replace(text, `,"at":"2026-11-21T07:00:00.000Z"`, "", 1))
	}
	diff := cmp.Diff(want, got)
	failIf(b.t, diff != "", "%s (-want +got):\n%s", list, diff)
}

func runOf(uid, id string) string {
	return fmt.Sprintf(`{"type":"run","uid":%q,"force":true,"command_id":%q}`, uid, id)
}

func TestTheSameCommandTwiceStartsOneAttempt(t *testing.T) {
	run := runOf("a", "c1")
	breaks := func(b *bundle, store *stored) {
		b.Command(run, run)
		_, err := b.poller(store, poller.Config{}).RunOnce(b.t.Context())
		stopIf(b.t, !errors.Is(err, errRedis), "want the error told, got %v", err)
		b.round()
		b.dispatch()
	}
	stories := map[string]func(*bundle){
		"in one batch": func(b *bundle) { b.Command(run, run); b.round(); b.dispatch() },
		"in two batches": func(b *bundle) {
			b.obey(run)
			b.dispatch()
			b.obey(run)
			b.dispatch()
		},
		"by two pollers": func(b *bundle) {
			b.obey(run)
			b.dispatch()
			b.Clock.Turn(time.Minute / 2) // the lane goes to another
			b.Command(run)
			b.roundOf(b.poller(b.Store, poller.Config{Owner: "p2"}))
			b.dispatch()
		},
		"with a crash between":      func(b *bundle) { breaks(b, &stored{Store: b.Store, crash: true}) },
		"with a lost reply between": func(b *bundle) { breaks(b, &stored{Store: b.Store, lost: true}) },
		"ten times, between other commands": func(b *bundle) {
			b.obey(run, run, run, run, `{"type":"put","uid":"b"}`, run, run, run, run, run, `{"type":"remove","uid":"b"}`, run)
			b.dispatch()
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, b *bundle) {
				b.running("a")
				story(b)
				stats := b.Stats()
				failIf(t, stats["run"] != 1 || stats["start"] != 2 || stats["duplicate"] == 0, "want one run and one attempt of it, got %v", stats)
				left := len(b.List(b.Store.Keys.ClaimedCommands)) + len(b.List(b.Store.Keys.Rejected))
				failIf(t, left > 0, "want nothing left and nothing rejected, got %d messages", left)
			})
		})
	}
}

func TestACommandThatWasRefusedIsNotRejectedTwice(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for range 2 {
			b.obey(`{"type":"run","uid":"nobody","command_id":"c1"}`, `{"type":"put","uid":"a","polcy":{},"command_id":"c2"}`)
		}
		stats := b.Stats()
		failIf(t, stats["unknown_model"] != 1 || stats["malformed"] != 1 || stats["duplicate"] != 2 || len(b.List(b.Store.Keys.Rejected)) != 2,
			"want each rejected once and repeated once, got %v", stats)
	})
}

func TestWhoAsksIsToldWhatBecameOfACommand(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(
			asking(put("a"), here, `"command_id":"c1"`),
			asking(put("a"), here),
			asking(put("a"), here, `"command_id":"c1"`),
			asking(`{"type":"put","uid":"b","refresh":"soon"}`, here),
			asking(`{"type":"put","uid":"b","policy":"fast"}`, here),
			asking(`{"type":"run","uid":"b"}`, here),
			asking(`{"type":"run"}`, here),
			asking(`{"type":"dance","uid":"b"}`, here),
			put("quiet"),
		)
		b.round()
		b.dispatch()
		b.obey(asking(`{"type":"run","uid":"a"}`, here, `"command_id":"c2"`))
		b.expectReplies(here,
			`{"command_id":"c1","uid":"a","type":"put","outcome":"applied"}`,
			`{"uid":"a","type":"put","outcome":"unchanged"}`,
			`{"uid":"b","type":"put","outcome":"refused","counter":"malformed","reason":"refresh: expected now or planned, found \"soon\"","field":"refresh","expected":"now or planned","found":"\"soon\""}`,
			`{"uid":"b","type":"put","outcome":"refused","counter":"malformed","reason":"policy: expected a policy, or the name of a stored one (default), found \"fast\"","field":"policy","expected":"a policy, or the name of a stored one (default)","found":"\"fast\""}`,
			`{"uid":"b","type":"run","outcome":"refused","counter":"unknown_model","reason":"uid: expected a stored model, found \"b\"","field":"uid","expected":"a stored model","found":"\"b\""}`,
			`{"type":"run","outcome":"refused","counter":"no_uid","reason":"uid: expected the uid of a model, found nothing","field":"uid","expected":"the uid of a model","found":"nothing"}`,
			`{"uid":"b","type":"dance","outcome":"refused","counter":"unknown_type","reason":"type: expected put, remove, run, enable, disable, accept, reject, hold, release, requeue, open_limit, found \"dance\"","field":"type","expected":"put, remove, run, enable, disable, accept, reject, hold, release, requeue, open_limit","found":"\"dance\""}`,
			`{"command_id":"c1","uid":"a","type":"put","outcome":"duplicate"}`,
			`{"command_id":"c2","uid":"a","type":"run","outcome":"refused","counter":"busy","reason":"an attempt is queued or running. To replace it, send \"force\": true.","field":"run","expected":"an idle model","found":"an attempt queued or running"}`,
		)
	})
}

func TestAReplyListKeepsTheNewestRepliesForADay(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		for i := range 1003 {
			b.Command(asking(fmt.Sprintf(`{"type":"enable","uid":"nobody","command_id":"c%d"}`, i), here))
		}
		p := b.poller(b.Store, poller.Config{Batch: 1000})
		for range 3 {
			b.roundOf(p)
		}
		replies := b.List(here)
		var first, last struct {
			ID string `json:"command_id"`
		}
		stopIf(t, len(replies) != 1000 || json.Unmarshal([]byte(replies[0]), &first) != nil || json.Unmarshal([]byte(replies[999]), &last) != nil,
			"want 1,000 replies, got %d", len(replies))
		failIf(t, first.ID != "c3" || last.ID != "c1002", "want the newest in their order, got %s to %s", first.ID, last.ID)
		left := b.Redis.TTL(t.Context(), here).Val()
		failIf(t, left > 24*time.Hour || left < 23*time.Hour, "want them gone in a day, got %s", left)
	})
}

func TestAReplyGoesToAReplyListOfTheQueueAndNowhereElse(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		b := setup(t, server)
		for _, key := range []string{
			"bigtables-input", "bigtables:due", "bigtables:model:a", "other:reply:x", "{bigtables}:reply:x", "{bigtables:0}:reply:x", "bigtables:reply:", "bigtables:reply:a b",
			"bigtables:reply:x:y", "bigtables:reply:" + strings.Repeat("x", 101), "bigtables:reply:x\n", "x",
		} {
			server.Flush(t)
			b.obey(asking(put("a"), key, `"command_id":"c1"`))
			stats := b.Stats()
			failIf(t, len(stats) != 1 || stats["malformed"] != 1, "%q: want the command refused, got %v", key, stats)
			if rejected := b.List(b.Store.Keys.Rejected); len(rejected) != 1 || !strings.Contains(rejected[0], `"reason":"reply_to: expected bigtables:reply:NAME with 1-100 letters, digits or _.- as NAME, found `) {
				t.Errorf("%q: want the field named, got %q", key, rejected)
			}
			there := b.Redis.Exists(t.Context(), key).Val()
			failIf(t, there > 0, "%q: want the key untouched", key)
		}
		server.Flush(t)
		name := "bigtables:reply:" + strings.Repeat("x", 97) + "_.-"
		b.obey(asking(put("a"), name))
		b.expectReplies(name, `{"uid":"a","type":"put","outcome":"applied"}`)
	})
}

func TestAReplyThatFindsNoListIsLostAndTheCommandIsNot(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Redis.Set(t.Context(), here, "text", 0)
		b.obey(asking(put("a"), here), put("b"))
		stats := b.Stats()
		failIf(t, stats["create"] != 2 || b.Redis.Get(t.Context(), here).Val() != "text", "want both carried out and the key as it was, got %v", stats)
	})
}

func TestWhoWantedACommandStandsInTheJournal(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(
			asking(put("a"), here, `"by":"ann@shop\n"`), put("b"),
			`{"type":"disable","uid":"a","by":"`+strings.Repeat("é", 40)+`"}`,
			`{"type":"enable","uid":"a","by":"importer"}`, `{"type":"remove","uid":"a","by":"bob"}`,
		)
		b.round()
		entries, _, err := report.Of(b.Store).Tail(t.Context(), "0-0")
		var got []string
		for _, entry := range entries {
			got = append(got, string(entry.Event)+" "+entry.By)
		}
		want := []string{"create ann@shop", "create ", "disable " + strings.Repeat("é", 28) + "…", "enable importer", "remove bob"}
		diff := cmp.Diff(want, got)
		failIf(t, diff != "" || err != nil, "%v (-want +got):\n%s", err, diff)
	})
}

func TestInAQueueOfSeveralPartsAReplyStandsInThatOfTheModel(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		mine, other := p.in(0, 1)[0], p.in(1, 1)[0]
		for i, replyTo := range []string{"{q}:reply:x", "q:reply:x", "{q:0}:reply:x", "{q:1}:reply:x"} {
			p.push(p.parts[0].Keys.Control, asking(put(mine, `"refresh":"now"`), replyTo), asking(put(other, `"refresh":"now"`), replyTo, `"by":"ann"`, fmt.Sprintf(`"command_id":"c%d"`, i)))
		}
		p.push(p.parts[0].Keys.Control, asking(put(mine), "{q:2}:reply:x"), asking(put(mine), "{qq}:reply:x"))
		p.round(0)
		p.round(1)
		for i, uid := range []string{mine, other} {
			list := p.parts[i].Keys.Reply("x")
			replies := p.redis.LRange(t.Context(), list, 0, -1).Val()
			failIf(t, len(replies) != 4 || strings.Count(strings.Join(replies, ""), `"uid":"`+uid+`","type":"put","outcome":`) != 4,
				"want four replies about %s in %s, got %q", uid, list, replies)
		}
		p.expectStats(0, map[string]int64{"create": 1, "update": 3, "malformed": 2, "forwarded": 4, "duplicate": 0})
		p.expectStats(1, map[string]int64{"create": 1, "update": 3, "forwarded": 0, "duplicate": 0})
		keys := p.redis.Exists(t.Context(), "{q}:reply:x", "q:reply:x", "{q:2}:reply:x", "{qq}:reply:x").Val()
		failIf(t, keys > 0, "want no other reply list, got %d", keys)
		entries, _, err := report.Of(p.parts[1]).Tail(t.Context(), "0-0")
		failIf(t, err != nil || len(entries) != 4 || entries[0].By != "ann", "want who wanted it told where it was forwarded to, got %+v, %v", entries, err)
	})
}

func TestACommandThatIsForwardedIsKnownByItsIdWhereItIsCarriedOut(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		other := p.in(1, 1)[0]
		for range 2 {
			p.push(p.parts[0].Keys.Control, put(other, `"refresh":"now"`, `"command_id":"c1"`))
			p.round(0)
			p.round(1)
		}
		p.expectStats(0, map[string]int64{"forwarded": 2, "duplicate": 0})
		p.expectStats(1, map[string]int64{"create": 1, "update": 0, "duplicate": 1})
	})
}

func TestAnIdIsForgottenAfterADay(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.obey(runOf("a", "c1"), runOf("a", "old"))
		b.Clock.Turn(24*time.Hour - time.Millisecond)
		b.obey(runOf("a", "c1"))
		b.ExpectStats("want a duplicate within the day", map[string]int{"run": 2, "duplicate": 1})
		b.Clock.Turn(time.Millisecond)
		b.obey(runOf("a", "c1"))
		b.ExpectStats("want it carried out behind the day", map[string]int{"run": 3, "duplicate": 1})
		ids := b.Scores(b.Store.Keys.Commands)
		failIf(t, len(ids) != 1 || ids["c1"] != b.Clock.Now().UnixMilli(), "want the old id gone and the new one noted, got %v", ids)
	})
}

func TestACommandWhoseModelChangedMeanwhileIsNoDuplicateOfItself(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.running("a")
		b.Command(runOf("a", "c1"))
		result := b.result("failure", "a")
		meanwhile := func() {
			b.Say(result)
			b.roundOf(b.poller(b.Store, poller.Config{Owner: "p2"}))
		}
		b.roundOf(b.poller(&stored{Store: b.Store, meanwhile: meanwhile}, poller.Config{}))
		b.ExpectStats("want the command carried out on top of the failure", map[string]int{"run": 1, "duplicate": 0, "failure": 1})
	})
}
