package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// aged are models of two tenants, of which one is stale, one late and two are fresh, and one that nobody watches.
func (c *console) aged(queue *fixture.Queue) (now time.Time) {
	c.t.Helper()
	c.policy(`{"name":"feeds","fresh_within":"26h","warn_within":"24h"}`)
	c.in = ""
	for i, uid := range []string{"old", "late", "new", "newer"} {
		c.in += fmt.Sprintf("{\"uid\":%q,\"policy\":\"feeds\",\"rrule\":\"FREQ=YEARLY\",\"labels\":{\"tenant\":\"t%d\"}}\n", uid, i%2)
	}
	c.in += `{"uid":"unwatched","rrule":"FREQ=YEARLY"}`
	c.do("model", "put", "-")
	now = testkit.Got(queue.Store.Now(c.t.Context()))(c.t)
	c.age(queue, "old", "stale", now.Add(-30*time.Hour), now.Add(-4*time.Hour))
	c.age(queue, "late", "late", now.Add(-25*time.Hour), now.Add(time.Hour))
	c.age(queue, "new", "fresh", now.Add(-2*time.Hour), now.Add(22*time.Hour))
	return now
}

// age writes the freshness of a model as it would be after a while.
func (c *console) age(queue *fixture.Queue, uid, freshness string, last, staleAt time.Time) {
	c.t.Helper()
	ctx, k := c.t.Context(), queue.Store.Keys
	queue.Redis.HSet(ctx, k.Model(uid), "freshness", freshness, "stale_at", model.FormatTime(staleAt), "last_success_at", model.FormatTime(last))
	queue.Redis.HDel(ctx, k.Model(uid), "fresh_since")
	score := redis.Z{Score: float64(staleAt.UnixMilli()), Member: uid}
	queue.Redis.ZAdd(ctx, k.StaleAt, score)
	queue.Redis.ZRem(ctx, k.Late, uid)
	switch freshness {
	case "stale":
		queue.Redis.ZRem(ctx, k.StaleAt, uid)
		queue.Redis.ZAdd(ctx, k.Stale, score)
	case "late":
		queue.Redis.ZAdd(ctx, k.Late, score)
	}
}

func TestFreshnessTellsTheShareAndWhichAreStaleForLongest(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, queue := at(t, server), fixture.Live(t, server)
		c.do("policy", "ls")
		expectContains(t, c.do("freshness"), "no model is watched")
		c.aged(queue)
		c.do("model", "disable", "old", "--reason", "not paid")
		expectContains(t, c.do("freshness"), "25.00% of 4 watched models are fresh, 1 never succeeded yet, 1 late, 1 stale\n", "old  4h", "disabled: not paid")
		expectContains(t, c.do("stats"), "1 model has never succeeded yet. Look why the first attempts fail.  -> refreshd model ls -l status=never\n", "freshness", "25.00% of 4 watched models are fresh, 1 never succeeded yet, 1 late, 1 stale")
		for selector, want := range map[string][4]float64{"tenant=t0": {2, 1, 0, 1}, "tenant=t1": {2, 0, 1, 0}, "": {4, 1, 1, 1}, "status=stale": {1, 0, 0, 1}, "status=never": {1, 0, 0, 0}, "uid=unwatched": {}} {
			v := c.object("freshness", "-l", selector)
			got := [4]float64{v["watched"].(float64), v["fresh"].(float64), v["late"].(float64), v["stale"].(float64)}
			failIf(t, got != want, "%q: expected %v, found %v", selector, want, got)
		}
		v := c.object("freshness", "--histogram")
		worst := v["worst"].([]any)
		failIf(t, len(worst) != 1 || worst[0].(map[string]any)["uid"] != "old", "expected old alone among the worst, found %v", worst)
		got := map[string]float64{}
		for _, bucket := range v["histogram"].([]any) {
			if b := bucket.(map[string]any); b["models"] != 0.0 {
				got[b["up_to"].(string)] = b["models"].(float64)
			}
		}
		equal(t, map[string]float64{"6h": 1, "2d": 2, "never": 1}, got)
		for status, uid := range map[string]string{"stale": "old", "late": "late"} {
			expectContains(t, c.do("model", "ls", "-l", "status="+status), uid)
		}
		expectContains(t, c.do("model", "get", "late"), "late")
		expectContains(t, c.do("explain", "old"), "Stale since ")
	})
}

func TestFreshnessOfThePastIsThatOfNowWithoutWhatTheJournalHasToldSince(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, queue := at(t, server), fixture.Live(t, server)
		now := c.aged(queue)
		k := queue.Store.Keys
		queue.Redis.Del(t.Context(), k.Journal)
		for uid, created := range map[string]time.Duration{"old": 72 * time.Hour, "late": 72 * time.Hour, "new": 72 * time.Hour, "newer": 3 * time.Hour} {
			queue.Redis.HSet(t.Context(), k.Model(uid), "rev", now.Add(-created).UnixMilli()) // a rev begins with the creation
		}
		tell := func(ago time.Duration, uid, event, was, is string) {
			t.Helper()
			values := []any{"event", event, "uid", uid, "at", model.FormatTime(now.Add(-ago)), "freshness", is}
			if was != "" {
				values = append(values, "freshness_was", was)
			}
			must(t, queue.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: k.Journal, Values: values}).Err())
		}
		tell(48*time.Hour, "gone", "create", "", "fresh")
		tell(47*time.Hour, "new", "became_stale", "late", "stale")
		tell(5*time.Hour, "gone", "remove", "fresh", "")
		tell(4*time.Hour, "old", "became_stale", "late", "stale")
		tell(3*time.Hour, "newer", "create", "", "never")
		tell(2*time.Hour, "new", "success", "stale", "fresh")
		tell(time.Hour, "late", "became_late", "fresh", "late")
		for ago, want := range map[time.Duration]string{
			0:                             "[4 1 1 1] [old]",
			time.Hour - time.Minute:       "[4 1 1 1] [old]",
			time.Hour + time.Minute:       "[4 2 0 1] [old]",
			2*time.Hour + time.Minute:     "[4 1 0 2] [new old]",
			3*time.Hour + time.Minute:     "[3 1 0 2] [new old]",
			4*time.Hour + time.Minute:     "[3 1 1 1] [new]",
			5*time.Hour + time.Minute:     "[4 2 1 1] [new]",
			47*time.Hour - 30*time.Minute: "[4 2 1 1] [new]",
		} {
			v := c.object("freshness", "--at", model.FormatTime(now.Add(-ago)))
			names := []any{}
			for _, one := range v["worst"].([]any) {
				names = append(names, one.(map[string]any)["uid"])
			}
			got := fmt.Sprint([]any{v["watched"], v["fresh"], v["late"], v["stale"]}, " ", names)
			failIf(t, got != want, "%s ago: expected %s, found %s", ago, want, got)
		}
		v := c.object("freshness", "-l", "tenant=t0", "--at", model.FormatTime(now.Add(-2*time.Hour-time.Minute)))
		failIf(t, v["watched"] != 2.0 || v["stale"] != 2.0, "expected the two models of the tenant stale, found %v", v)
		expectContains(t, c.fail(exitFailed, "freshness", "--at", model.FormatTime(now.Add(-48*time.Hour-time.Minute))), "as far back as the journal reaches")
		expectContains(t, c.fail(exitFailed, "freshness", "--at", model.FormatTime(now.Add(time.Hour))), "to now")
		for _, args := range [][]string{{"--at", "yesterday"}, {"--at", "2026-01-01T00:00:00Z", "--histogram"}, {"--at", "2026-01-01T00:00:00Z", "-l", "status=late"}} {
			c.fail(2, append([]string{"freshness"}, args...)...)
		}
	})
}
