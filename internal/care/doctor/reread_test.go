package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/fixture"
)

// intruder changes something in the middle of what is read: it sends each command of a pipeline by itself, and acts after those whose name
// begins so. What is read in one step (MULTI) it cannot get into.
type intruder struct {
	after string
	act   func()
	busy  bool
	acted int
}

func (i *intruder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
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
			_ = next(ctx, []redis.Cmder{command}) // each command tells its own error
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

func TestAModelThatChangesWhileItIsReadIsNotReported(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		q.prepare()
		disabled := false
		in := &intruder{after: "hgetall", act: func() {
			disabled = !disabled
			verb := map[bool]string{false: "enable", true: "disable"}[disabled]
			q.put(`{"type":"`+verb+`","uid":"idle"}`, `{"type":"`+verb+`","uid":"busy"}`)
		}}
		q.Intercept(in)
		for range 4 {
			if report := q.check(Options{Repair: true}); report.Total(Error) > 0 || report.Repaired() > 0 {
				t.Fatalf("expected no finding, found\n%s", report)
			}
		}
		if in.acted < 8 {
			t.Errorf("expected an intruder in each reading, found %d", in.acted)
		}
	})
}

func TestAModelThatIsRemovedWhileItIsReadIsNoOrphan(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		const put = `{"type":"put","uid":"other","rrule":"FREQ=HOURLY"}`
		q.put(put)
		there := true
		in := &intruder{after: "exists", act: func() {
			if there = !there; there {
				q.put(put)
			} else {
				q.put(`{"type":"remove","uid":"other"}`)
			}
		}}
		q.Intercept(in)
		for range 6 {
			if report := q.check(Options{Repair: true}); report.Total(Error) > 0 || report.Repaired() > 0 {
				t.Fatalf("expected no finding, found\n%s", report)
			}
		}
		if in.acted == 0 {
			t.Error("expected an intruder")
		}
	})
}

func TestAnAttemptThatIsTakenAndAnsweredWhileTheInputIsReadIsNotStale(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		q.prepare()
		in := &intruder{after: "lrange", act: func() {
			if entry, found := q.Take(); found {
				q.Say(fixture.Result("success", entry.UID, entry.AttemptUID))
				q.put(`{"type":"disable","uid":"busy"}`)
			}
		}}
		q.Intercept(in)
		if report := q.check(Options{}); report.Counts["input-stale"].Found > 0 || in.acted == 0 {
			t.Errorf("expected no finding, found\n%s", report)
		}
	})
}

// The models swap their policies whenever one is read: each count stays the same, and every reading of them is wrong.
func TestAPolicyThatChangesHandsWhileItsModelsAreCountedIsNotReported(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		i := 0
		swap := func() {
			i++
			for m, uid := range []string{"a", "b"} {
				q.put(fmt.Sprintf(`{"type":"put","uid":%q,"policy":{"timeout":"%dm"}}`, uid, 1+(i+m)%2))
			}
		}
		swap()
		in := &intruder{after: "hget", act: swap}
		q.Intercept(in)
		for range 3 {
			if report := q.check(Options{Repair: true}); len(report.Counts) > 0 || report.Repaired() > 0 {
				t.Fatalf("expected no finding, found\n%s", report)
			}
		}
		if in.acted < 8 {
			t.Errorf("expected an intruder in each reading, found %d", in.acted)
		}
	})
}

// Each save brings a new policy, so that what a model named when it was read is gone when the policies are looked for.
func TestAPolicyThatGoesAfterItsModelWasReadIsNotMissing(t *testing.T) {
	onBothServers(t, func(t *testing.T, q *queue) {
		i := 0
		save := func() {
			i++
			q.put(fmt.Sprintf(`{"type":"put","uid":"a","policy":{"timeout":"%dm"}}`, i))
		}
		save()
		in := &intruder{after: "h", act: save}
		q.Intercept(in)
		for range 3 {
			if report := q.check(Options{Repair: true}); report.Total(Error) > 0 || report.Repaired() > 0 {
				t.Fatalf("expected no finding, found\n%s", report)
			}
		}
		if in.acted < 8 {
			t.Errorf("expected an intruder in each reading, found %d", in.acted)
		}
	})
}
