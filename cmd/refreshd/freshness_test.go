package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/model"
)

// aged are models of two tenants: one is stale, one late and two are fresh; nobody watches another one.
func (c *console) aged(queue *fixture.Queue) (now time.Time) {
	c.t.Helper()
	c.policy(`{"name":"feeds","fresh_within":"26h","warn_within":"24h"}`)
	c.in = ""
	for i, uid := range []string{"old", "late", "new", "newer"} {
		c.in += fmt.Sprintf("{\"uid\":%q,\"policy\":\"feeds\",\"rrule\":\"FREQ=YEARLY\",\"labels\":{\"tenant\":\"t%d\"}}\n", uid, i%2)
	}
	c.in += `{"uid":"unwatched","rrule":"FREQ=YEARLY"}`
	c.do("model", "put", "-")
	now = check.Got(queue.Store.Now(c.t.Context()))(c.t)
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
		untried := c.do("stats")
		failIf(t, strings.Contains(untried, "never succeeded yet. "), "expected no word of models that nobody has tried, found %s", untried)
		queue.Redis.ZAdd(t.Context(), queue.Store.Keys.Failing, redis.Z{Score: 1, Member: "never"})
		expectContains(t, c.do("stats"), "1 model has never succeeded yet. Some may be new. Look at those that have failed.  -> refreshd model ls -l status=never\n", "freshness", "25.00% of 4 watched models are fresh, 1 never succeeded yet, 1 late, 1 stale")
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

func TestFreshnessOfThePastIsWhatDispatchersNotedLastByThen(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		c, queue := at(t, server), fixture.Live(t, server)
		expectContains(t, c.fail(2, "freshness", "--at", "2026-11-21T06:00:00Z"), "a time of the last 90 days")
		hours := map[string]any{"2026-11-21T06:00": "fresh=3 never=1 late=2 stale=4", "2026-11-21T07:00": "fresh=10"}
		must(t, queue.Redis.HSet(t.Context(), queue.Store.Keys.Hours, hours).Err())
		for at, want := range map[string]string{"06:00:00": "06:00: [10 3 1 2 4]", "06:59:59": "06:00: [10 3 1 2 4]", "07:00:01": "07:00: [10 10 0 0 0]"} {
			v := c.object("freshness", "--at", "2026-11-21T"+at+"Z")
			got := fmt.Sprint(v["at"].(string)[11:16], ": ", []any{v["watched"], v["fresh"], v["never"], v["late"], v["stale"]})
			failIf(t, got != want, "%s: expected %s, found %s", at, want, got)
		}
		for _, args := range [][]string{{"--at", "yesterday"}, {"--at", "2026-11-21T07:00:00Z", "--histogram"}, {"--at", "2026-11-21T07:00:00Z", "-l", "tenant=t1"}} {
			c.fail(2, append([]string{"freshness"}, args...)...)
		}
	})
}
