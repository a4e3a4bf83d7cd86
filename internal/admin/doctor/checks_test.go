package doctor

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

func TestAllPartsOfAnOrphanAreReportedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		k := q.Store.Keys
		q.ok(q.Redis.Set(t.Context(), k.Payload("x"), "{}", 0).Err())
		q.ok(q.Redis.RPush(t.Context(), k.History("x"), "{}").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Due, 1e13, "x").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Running, 1e13, "x").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Failing, 1e12, "y").Err())
		q.ok(q.Redis.Do(t.Context(), "ZADD", k.Parked, 1e12, "y").Err())
		for _, repair := range []bool{false, true} {
			report := q.check(Options{Repair: repair})
			failIf(t, len(report.Findings) != 6 || report.Total(Error) != map[bool]int{false: 6, true: 0}[repair],
				"expected each of six once, found\n%s", report)
		}
	})
}

func TestARepairThatNeedsAKeyOfAnotherTypeIsLeftAndTheOthersAreMade(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		k := q.Store.Keys
		q.prepare()
		q.ok(q.Redis.ZRem(t.Context(), k.Due, "idle").Err())
		q.ok(q.Redis.Del(t.Context(), k.Running).Err())
		q.ok(q.Redis.Set(t.Context(), k.Running, "text", 0).Err())
		q.ok(q.Redis.Set(t.Context(), k.Stats, "text", 0).Err())
		q.ok(q.Redis.HSet(t.Context(), k.PolicyUses, "inline-gone", "7 1").Err())
		report := q.check(Options{Repair: true})
		if report.Counts["key-type"].Found != 2 || report.Counts["policy-unused"].Repaired != 1 || report.Counts["due-wrong"].Repaired != 0 ||
			!strings.Contains(report.String(), "left: commit a batch: WRONGTYPE bigtables:running holds a string, expected a zset") {
			t.Errorf("expected one left, which says why, and the other made, found\n%s", report)
		}
	})
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (r refusal) RedisError()   {}

// refusing answers each script, and each transaction that deletes, with an error, as Redis does while it takes no writes.
type refusing struct {
	passing
	answer refusal
}

func (r refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "multi" && commands[1].Name() == "hdel" { // others read
			return r.answer
		}
		return next(ctx, commands)
	}
}

func (r refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if command.Name() == "evalsha" {
			command.SetErr(r.answer)
			return r.answer
		}
		return next(ctx, command)
	}
}

func TestARedisThatRefusesARepairIsNamedAndTheDoctorGoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		for _, answer := range []refusal{"NOREPLICAS Not enough good replicas to write.", "OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Redis is configured to save RDB snapshots"} {
			q.Server.Flush(t)
			q := &queue{fixture.New(t, q.Server), t}
			q.prepare()
			q.ok(q.Redis.ZRem(t.Context(), q.Store.Keys.Due, "idle").Err())
			q.ok(q.Redis.HSet(t.Context(), q.Store.Keys.PolicyUses, "inline-gone", "7 1").Err())
			q.Intercept(refusing{answer: answer})
			report := q.check(Options{Repair: true})
			left := strings.Count(report.String(), string(answer)+"; repaired false")
			failIf(t, left != 2 || report.Counts["repair-refused"].Found != 1 || !strings.HasPrefix(report.Findings[len(report.Findings)-1].Code, "repair-refused"),
				"expected two left because of %s, and that at the end, found\n%s", answer, report)
		}
	})
}

func TestARedisThatIsLostWhileKeysAreLookedAtIsNoFindingAboutThem(t *testing.T) {
	q := &queue{fixture.New(t, testkit.Miniredis(t)), t}
	q.prepare()
	q.ok(q.Redis.RPush(t.Context(), q.Store.Keys.History("idle"), "{}").Err())
	asked := 0
	q.Intercept(testkit.Hook(func(_ context.Context, commands []redis.Cmder, next func() error) error {
		if commands[0].Name() == "type" {
			asked++
		}
		if asked < 2 {
			return next()
		}
		for _, command := range commands {
			command.SetErr(io.ErrUnexpectedEOF)
		}
		return io.ErrUnexpectedEOF
	}))
	report, err := Check(t.Context(), &store.Queue{Parts: []*store.Store{q.Store}}, Options{})
	report = report.without("persistence", "server-silent")
	failIf(t, !errors.Is(err, io.ErrUnexpectedEOF) || len(report.Findings) > 0, "expected the lost connection and no finding, found %v\n%s", err, report)
}
