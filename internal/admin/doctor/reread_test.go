package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

// intruder changes something in the middle of a read: it sends each command of a pipeline by itself, and acts after those whose name
// begins so. It cannot get into a read in one step (MULTI).
type intruder struct {
	passing
	after string
	act   func()
	busy  bool
	acted int
}

func (i *intruder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		defer i.intrude(command)
		return next(ctx, command)
	}
}

func (i *intruder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "multi" {
			return next(ctx, commands)
		}
		for command := range slices.Values(commands) {
			_ = next(ctx, []redis.Cmder{command}) // each command has its own error
			i.intrude(command)
		}
		return nil
	}
}

func (i *intruder) intrude(command redis.Cmder) {
	if strings.HasPrefix(command.Name(), i.after) && !i.busy {
		i.busy = true
		i.act()
		i.busy = false
		i.acted++
	}
}

func TestAnAttemptThatIsTakenAndAnsweredWhileTheInputIsReadIsNotStale(t *testing.T) {
	everywhere(t, func(t *testing.T, q *queue) {
		q.prepare()
		in := &intruder{after: "lrange", act: func() {
			if entry, found := q.Take(); found {
				q.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
				q.put(`{"type":"disable","uid":"busy"}`)
			}
		}}
		q.Intercept(in)
		report := q.check(Options{})
		failIf(t, report.Counts["input-stale"].Found > 0 || in.acted == 0, "expected no finding, found\n%s", report)
	})
}

func TestWhatChangesWhileItIsReadIsNotReported(t *testing.T) {
	policy := `{"type":"put","uid":%q,"policy":{"timeout":"%dm"}}`
	for name, test := range map[string]struct {
		after string
		acts  int // at least
		act   func(q *queue, i int)
	}{
		"models that are enabled and disabled": {"hgetall", long.Or(2, 8), func(q *queue, i int) {
			verb := map[int]string{0: "disable", 1: "enable"}[i%2]
			q.put(`{"type":"`+verb+`","uid":"idle"}`, `{"type":"`+verb+`","uid":"busy"}`)
		}},
		"a model that is removed": {"exists", 1, func(q *queue, i int) {
			q.put(map[int]string{0: `{"type":"put","uid":"other","rrule":"FREQ=HOURLY"}`, 1: `{"type":"remove","uid":"other"}`}[i%2])
		}},
		// Each count stays the same, and every reading of them is wrong.
		"models that swap their policies": {"hget", long.Or(2, 8), func(q *queue, i int) {
			q.put(fmt.Sprintf(policy, "a", 1+i%2), fmt.Sprintf(policy, "b", 1+(i+1)%2))
		}},
		// The policy that a model named is gone when the policies are read.
		"a policy that goes": {"h", long.Or(2, 8), func(q *queue, i int) { q.put(fmt.Sprintf(policy, "a", i+1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, q *queue) {
				q.prepare()
				test.act(q, 0)
				in := &intruder{after: test.after}
				in.act = func() { test.act(q, in.acted+1) }
				q.Intercept(in)
				for range long.Or(2, 6) {
					report := q.check(Options{Repair: true})
					stopIf(t, report.Total(Error) > 0 || report.Repaired() > 0, "expected no finding, found\n%s", report)
				}
				failIf(t, in.acted < test.acts, "expected an intruder in each reading, found %d", in.acted)
			})
		})
	}
}
