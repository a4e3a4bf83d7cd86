package poller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/poller"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

const holdAll = `{"type":"hold","id":"h1","reason":"maintenance","by":"ann"}`

func TestAHoldOnTheWireStopsWhatIsDueUntilARelease(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.obey(asking(`{"type":"hold","id":"h1","selector":"uid=a*","reason":"moves house","for":"2h","within":"0s","by":"ann"}`, here), put("a1"), put("b1"))
		b.dispatch()
		parked := b.Scores(b.Store.Keys.Parked)
		failIf(t, len(parked) != 1 || b.Model("a1")["parked_by"] != "hold:h1" || b.Attempt("b1") == "", "want a1 parked and b1 started, got %v", parked)
		got, want := b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Holds).Val()["h1"], `{"selector":"uid=a*","since":"2026-11-21T07:00:00.000Z","until":"2026-11-21T09:00:00.000Z","reason":"moves house","by":"ann"}`
		failIf(t, got != want, "want %s, got %s", want, got)
		release := asking(`{"type":"release","id":"h1"}`, here)
		b.obey(release, release)
		b.Clock.Turn(time.Second)
		b.dispatch()
		b.dispatch()
		failIf(t, b.Attempt("a1") == "", "want a1 started behind the release, got %v", b.Model("a1"))
		b.expectReplies(here, `{"type":"hold","outcome":"applied"}`, `{"type":"release","outcome":"applied"}`, `{"type":"release","outcome":"unchanged"}`)
		b.ExpectStats("want each counted by its type", map[string]int{"hold": 1, "release": 1, "unchanged": 1})
	})
}

func TestWhatSomebodyWantsOnTheWireIsADeed(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.obey(put("a"), holdAll, `{"type":"release","id":"h1","by":"bob"}`, `{"type":"disable","uid":"a","by":"ann","reason":"not paid"}`, `{"type":"enable","uid":"a"}`, holdAll)
		var got []string
		for _, entry := range b.Redis.XRange(t.Context(), b.Store.Keys.Deeds, "-", "+").Val() {
			d := store.ReadDeed(entry)
			got = append(got, fmt.Sprint(d.Verb, "|", d.What, "|", d.By, "|", d.From, "|", d.Number, "|", d.Reason))
		}
		equal(t, []string{
			"hold|h1 all models|ann|control list|0|maintenance", "release|h1 all models|bob|control list|0|", "hold|h1 all models|ann|control list|0|maintenance",
			"model disable|a|ann|control list|1|not paid",
		}, got)
	})
}

func TestARequeueOnTheWireBringsBackWhatWasRejected(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.Command(`{"type":"run","uid":"a"}`, `{"type":"run","uid":"b"}`)
		b.hear("garbage")
		b.obey(put("a", `"refresh":"planned"`, `"rrule":"FREQ=DAILY;BYHOUR=8"`), asking(`{"type":"requeue","uid":"a"}`, here), asking(`{"type":"requeue","uid":"a"}`, here))
		b.round()
		stats := b.Stats()
		failIf(t, stats["run"] != 1 || stats["requeue"] != 1 || stats["unchanged"] != 1, "want the run of a carried out, got %v", stats)
		left := b.List(b.Store.Keys.Rejected)
		failIf(t, len(left) != 2, "want those of others left, got %q", left)
		b.expectReplies(here, `{"uid":"a","type":"requeue","outcome":"applied"}`, `{"uid":"a","type":"requeue","outcome":"unchanged"}`)
		b.obey(put("b"), `{"type":"requeue"}`)
		b.round()
		if stats, left := b.Stats(), b.List(b.Store.Keys.Rejected); stats["run"] != 2 || stats["malformed"] != 2 || len(left) != 1 {
			t.Errorf("want all tried again, and garbage rejected again, got %v and %q", stats, left)
		}
	})
}

func TestALimitIsOpenedOnTheWire(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		const slots = "1795248000000000 1795248000000000 tbl_1 (http_429)" // 2026-11-21T08:00:00Z
		must(t, b.Redis.Set(t.Context(), b.Store.Keys.Rate("host=a"), slots, time.Hour).Err())
		open := asking(`{"type":"open_limit","key":"host=a"}`, here)
		b.obey(open, open)
		b.round()
		b.expectReplies(here, `{"type":"open_limit","outcome":"applied"}`, `{"type":"open_limit","outcome":"unchanged"}`)
		left := model.ParseSlots(b.Redis.Get(t.Context(), b.Store.Keys.Rate("host=a")).Val())
		failIf(t, left.By != "" || left.Closed.After(b.Clock.Now()), "got the slots %+v, want them open", left)
	})
}

func TestACommandAboutTheQueueThatCannotBeUsedIsRejectedWithItsReason(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		wrong := map[string]string{
			`{"type":"hold","id":"h1"}`:                                                        "reason: expected why",
			`{"type":"hold","reason":"x"}`:                                                     "id: expected",
			`{"type":"hold","id":"h1","reason":"x","uid":"a"}`:                                 "uid: expected one of id, selector",
			`{"type":"hold","id":"h1","reason":"x","selector":"status=running"}`:               "selector: expected status=failing",
			`{"type":"hold","id":"h1","reason":"x","selector":"="}`:                            "expected",
			`{"type":"hold","id":"h1","reason":"x","for":"0s"}`:                                "for: expected a length of time",
			`{"type":"hold","id":"h1","reason":"x","for":"2h","until":"2026-11-22T07:00:00Z"}`: "until: expected it or for, found both",
			`{"type":"hold","id":"h1","reason":"x","until":"tomorrow"}`:                        "until: expected an RFC 3339 time",
			`{"type":"hold","id":"h1","reason":"x","until":"2020-01-01T00:00:00Z"}`:            "until: expected a time after",
			`{"type":"hold","id":"h1","reason":"x","within":"48h"}`:                            "within: expected 0s to",
			`{"type":"release"}`:                         "id: expected",
			`{"type":"release","id":"h1","within":"2d"}`: "within: expected 0s to",
			`{"type":"open_limit"}`:                      "key: expected",
			`{"type":"requeue","uid":""}`:                "uid: expected",
			`{"type":"requeue","id":"x"}`:                "id: expected one of uid",
		}
		for command, reason := range wrong {
			b.obey(command)
			kept := b.List(b.Store.Keys.Rejected)
			last := kept[len(kept)-1]
			failIf(t, !strings.Contains(last, reason) || !strings.Contains(last, `"source":"control"`), "%s: want %q, got %s", command, reason, last)
		}
		holds := b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Holds).Val()
		failIf(t, len(holds) > 0, "want no hold, got %v", holds)
	})
}

func TestACommandAboutTheQueueThatIsPushedAgainHoldsNothingAnew(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		id := func(command, id string) string { return asking(command, here, `"command_id":"`+id+`"`) }
		hold, release := id(holdAll, "c1"), id(`{"type":"release","id":"h1"}`, "c2")
		b.obey(hold, release, hold)
		b.Command(hold)
		b.round()
		if got := b.Stats(); got["duplicate"] != 2 || !strings.Contains(b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Holds).Val()["h1"], `"until"`) {
			t.Errorf("want the hold over, got %v and %v", got, b.Redis.HGetAll(b.t.Context(), b.Store.Keys.Holds).Val())
		}
		b.expectReplies(here, `{"command_id":"c1","type":"hold","outcome":"applied"}`, `{"command_id":"c2","type":"release","outcome":"applied"}`,
			`{"command_id":"c1","type":"hold","outcome":"duplicate"}`, `{"command_id":"c1","type":"hold","outcome":"duplicate"}`)
	})
}

type refusing struct {
	fixture.Part
	err error
}

func (r *refusing) ApplyQueueCommand(ctx context.Context, c *model.Command, claimed store.Claimed, now time.Time) (model.Outcome, error) {
	if r.err != nil {
		return "", r.err
	}
	return r.Flow.ApplyQueueCommand(ctx, c, claimed, now)
}

func TestACommandAboutTheQueueThatCannotReachRedisWaitsInItsOrderAndKeepsNoResultWaiting(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		store := &refusing{fixture.Whole(b.Store), errors.New("a part does not answer")}
		p := b.poller(store, poller.Config{})
		b.running("a")
		b.Command(holdAll, put("b"), `{"type":"release","id":"h1"}`)
		b.Say(b.result("success", "a"))
		round := b.roundOf(p)
		failIf(t, round.Waiting != 2 || round.Applied != 2, "want two commands left, got %+v", round)
		store.err = nil
		round = b.roundOf(p)
		failIf(t, round.Waiting != 2, "want them to wait a moment, got %+v", round)
		b.Clock.Turn(-time.Hour) // the clock of Redis is set back: they do not wait for the hour to pass again
		b.roundOf(p)
		got := b.Stats()
		failIf(t, got["hold"] != 1 || got["release"] != 1 || len(b.List(b.Store.Keys.ClaimedCommands)) > 0, "want both carried out, got %v", got)
	})
}

func TestAHoldOnTheWireHoldsEachPartOfAQueue(t *testing.T) {
	onPair(t, func(t *testing.T, p *pair) {
		holds := func() (held, open int) {
			for _, part := range p.parts {
				texts := p.redis.HGetAll(t.Context(), part.Keys.Holds).Val()
				if held += min(1, len(texts["h1"])); !strings.Contains(texts["h1"], `"until"`) {
					open++
				}
			}
			return held, open
		}
		p.push(p.parts[1].Keys.Control, holdAll)
		p.rounds(1)
		if held, open := holds(); held != 2 || open != 2 {
			t.Errorf("want a hold in both parts, got %d, of which %d go on", held, open)
		}
		p.push(p.parts[0].Keys.Control, `{"type":"release","id":"h1"}`)
		p.rounds(0)
		if _, open := holds(); open != 0 {
			t.Errorf("want it released in both parts, it goes on in %d", open)
		}
		there := p.in(1, 1)[0]
		p.push(p.parts[1].Keys.Output, fmt.Sprintf(`{"type":"success","big_table_uid":%q,"refresh_attempt_uid":"x"}`, there))
		p.rounds(1)
		p.push(p.parts[0].Keys.Control, `{"type":"requeue"}`)
		p.rounds(0)
		p.rounds(1)
		p.expectStats(1, map[string]int64{"unknown_model": 2})
	})
}

func TestAReleaseOnTheWireMaySayThatAllStartsAtOnce(t *testing.T) {
	both(t, func(t *testing.T, b *bundle) {
		b.obey(`{"type":"hold","id":"h1","reason":"moves house","within":"24h"}`, put("a1"))
		b.dispatch()
		b.obey(`{"type":"release","id":"h1","within":"0s"}`)
		b.Clock.Turn(time.Second)
		b.dispatch()
		b.dispatch()
		failIf(t, b.Attempt("a1") == "", "want a1 started, got %v", b.Model("a1"))
	})
}
