package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/internal/hint"
	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/long"
	"github.com/refreshd/refreshd/model"
)

// fixed has a clock that stands, until somebody turns it.
var (
	fixed  = store.Config{Clock: func() time.Time { return time.Date(2026, 11, 26, 6, 0, int(turned.Load()), 0, time.UTC) }, JournalCap: store.None}
	turned atomic.Int64 // seconds
)

// patientOne is an operator of a queue with three models, one of them disabled, whose calls go through a hook.
func patientOne(t *testing.T, server *testkit.Server, parts int, answers time.Duration, hook goredis.Hook) Operator {
	t.Helper()
	options := server.Options()
	options.PoolSize, options.ReadTimeout = 1, answers
	reads, writes := goredis.NewUniversalClient(options), goredis.NewUniversalClient(options)
	t.Cleanup(func() { _ = errors.Join(reads.Close(), writes.Close()) })
	clients := &redis.Clients{Read: reads, Write: writes, Block: writes}
	must(t, store.Create(t.Context(), clients, fixed, parts))
	queue := check.Got(store.Open(t.Context(), clients, fixed))(t)
	must(t, queue.LoadScripts(t.Context()))
	daily := []*Request{put(t, "d0", 1), put(t, "d1", 1)}
	for _, r := range daily {
		r.Command.Definition.Rule = "FREQ=DAILY"
	}
	must(t, Execute(t.Context(), queue, append(daily, put(t, "m0", 1), put(t, "m1", 1), put(t, "m2", 1), ask(model.CommandDisable, "m1"))))
	reads.AddHook(redis.RetryHook{})
	writes.AddHook(redis.RetryHook{Writes: true})
	reads.AddHook(hook)
	writes.AddHook(hook)
	return Operator{Queue: queue, By: "ann"}
}

// insisting is a context in which calls are made again at once, and for ever.
func insisting(t *testing.T) context.Context {
	return redis.WithRetry(t.Context(), func(context.Context) func(error) error {
		return func(err error) error { return t.Context().Err() }
	})
}

// errUnanswered is what go-redis says of a call that takes too long.
var errUnanswered = &net.OpError{Op: "read", Err: errors.New("i/o timeout")}

func unanswer(commands []goredis.Cmder) error {
	for _, command := range commands {
		command.SetErr(errUnanswered)
	}
	return errUnanswered
}

// unanswered lets calls with these numbers fail, before Redis has carried them out or after that. It has struck when there was the first of them.
func unanswered(late bool, numbers ...int64) (hook testkit.Hook, struck func() bool) {
	var calls atomic.Int64
	return func(_ context.Context, commands []goredis.Cmder, next func() error) error {
		is := commands[0].Name() != "hello" && slices.Contains(numbers, calls.Add(1))
		if is && late || !is {
			if err := next(); !is {
				return err
			}
		}
		return unanswer(commands)
	}, func() bool { return calls.Load() >= numbers[0] }
}

func pass(_ context.Context, _ []goredis.Cmder, next func() error) error { return next() }

// dump is all that a server holds, without how often what operators set was changed: to count it twice does no harm.
func dump(t *testing.T, server *testkit.Server) map[string]testkit.Value {
	t.Helper()
	all := server.Dump(t)
	for _, value := range all {
		if hash, is := value.Data.(map[string]string); is {
			delete(hash, "changes")
		}
	}
	return all
}

// Whichever call of a command is not answered, whether it was carried out or not, what the command tells and leaves behind is the same.
func TestACommandOfWhichACallIsNotAnsweredIsCarriedOutOnce(t *testing.T) {
	server := testkit.Miniredis(t)
	for _, c := range slices.Concat(patientCommands[:long.Or(5, len(patientCommands))], idleCommands) {
		t.Run(c.name, func(t *testing.T) {
			server.Flush(t)
			told, err := c.do(t, insisting(t), patientOne(t, server, 2, check.Limit, testkit.Hook(pass)))
			must(t, err)
			want := dump(t, server)
			for _, late := range []bool{false, true} {
				for n := int64(1); ; n++ {
					server.Flush(t)
					hook, struck := unanswered(late, n)
					found, err := c.do(t, insisting(t), patientOne(t, server, 2, check.Limit, hook))
					must(t, err)
					if !struck() {
						failIf(t, n < 2, "expected more calls than %d", n-1)
						break
					}
					diff := cmp.Diff(told, found) + cmp.Diff(want, dump(t, server))
					failIf(t, diff != "", "call %d is not answered, though carried out: %v (-want +got):\n%s", n, late, diff)
				}
			}
		})
	}
}

// A process that is stopped receives what is sent to it, and carries it out when it goes on: the script of which the sender has heard nothing.
func TestARedisThatStandsStillOnlyDelaysACommand(t *testing.T) {
	server := testkit.Redis(t)
	goOn := func() { server.Signal(t, syscall.SIGCONT) }
	t.Cleanup(goOn)
	for _, c := range patientCommands {
		t.Run(c.name, func(t *testing.T) {
			server.Flush(t)
			told, err := c.do(t, insisting(t), patientOne(t, server, 2, check.Limit, testkit.Hook(pass)))
			must(t, err)
			want := dump(t, server)
			server.Flush(t)
			var stopped, silent atomic.Bool
			found, err := c.do(t, insisting(t), patientOne(t, server, 2, 200*time.Millisecond, testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
				if commands[0].Name() != "evalsha" || stopped.Swap(true) {
					return next()
				}
				server.Signal(t, syscall.SIGSTOP)
				defer goOn()
				err := next()
				silent.Store(err != nil && !redis.Answered(err))
				return err
			})))
			must(t, err)
			diff := cmp.Diff(told, found) + cmp.Diff(want, dump(t, server))
			failIf(t, !silent.Load() || diff != "", "the stopped server left the script unanswered: %t (-want +got):\n%s", silent.Load(), diff)
		})
	}
}

// between makes the first script of a command go without an answer, whether carried out or not, and others act before it is sent again.
func between(t *testing.T, late bool, command func(context.Context, Operator) error, others func(*store.Queue)) map[string]string {
	t.Helper()
	server := testkit.Miniredis(t)
	var once atomic.Bool
	var act func()
	o := patientOne(t, server, 1, check.Limit, testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
		if commands[0].Name() != "evalsha" || once.Swap(true) {
			return next()
		}
		failIf(t, late && next() != nil, "expected the script carried out")
		act()
		return unanswer(commands)
	}))
	client := server.Client(t)
	other := check.Got(store.Open(t.Context(), &redis.Clients{Read: client, Write: client, Block: client}, fixed))(t)
	act = func() { turned.Add(1); others(other) }
	turned.Add(1) // since the models were saved
	defer turned.Store(0)
	must(t, command(insisting(t), o))
	models := map[string]string{}
	for uid, r := range check.Got(other.Parts[0].Load(t.Context(), []string{"m0", "m1", "new", "soon"}))(t) {
		models[uid] = fmt.Sprint(r.Payload, " ", len(r.Labels), " ", r.Disabled, " ", r.AttemptUID)
	}
	return models
}

// While nobody knows whether a commit was carried out, others go on.
func TestWhatOthersDoMeanwhileIsNotTakenForTheSave(t *testing.T) {
	for _, late := range []bool{false, true} {
		got := between(t, late, func(ctx context.Context, o Operator) error {
			tally, err := save(ctx, t, o)
			diff := cmp.Diff(map[string]int{ResultCreated: 1, ResultUpdated: 4, ResultUnchanged: 1}, tally)
			failIf(t, diff != "", "carried out before the others came: %v (-want +got):\n%s", late, diff)
			return err
		}, func(other *store.Queue) {
			labelled := put(t, "m0", 2)
			labelled.Command.Definition.Labels = map[string]string{"by": "another"} // which alone differs from the save
			must(t, Execute(t.Context(), other, []*Request{labelled, put(t, "new", 9), ask(model.CommandDisable, "soon")}))
		})
		delete(got, "m1")
		want := map[string]string{"m0": `{"n":2} 0 false `, "new": `{"n":2} 0 false `, "soon": fmt.Sprint(`{"n":1} 0 `, late, " ")}
		diff := cmp.Diff(want, got)
		failIf(t, diff != "", "carried out before the others came: %v (-want +got):\n%s", late, diff)
	}
}

// start lets a dispatcher start a model, whatever it waits for.
func start(t *testing.T, queue *store.Queue, uid, attempt string) {
	t.Helper()
	part, now := queue.Of(uid), fixed.Clock()
	record := check.Got(part.Load(t.Context(), []string{uid}))(t)[uid]
	codes := check.Got(part.Commit(t.Context(), store.Batch{Now: now, MaxQueued: 9, Items: []store.Item{{Transition: record.Decide(record.Start(now, attempt), now)}}}))(t)
	failIf(t, codes[0] != store.CodeApplied, "expected %s started, found it %s", uid, codes[0])
}

func TestACommandThatWasCarriedOutUnheardUndoesNothingOfWhatCameBehindIt(t *testing.T) {
	begin := func(q *store.Queue) { start(t, q, "m0", "a1") }
	carryOut := func(requests ...*Request) func(*store.Queue) {
		return func(q *store.Queue) { must(t, Execute(t.Context(), q, requests)) }
	}
	for _, test := range []struct {
		name, uid string
		command   model.Command
		told      string
		others    func(*store.Queue)
		want      string
	}{
		{"run is not refused as it runs", "m0", model.Command{Type: model.CommandRun}, "run m0", begin, `{"n":1} 0 false a1`},
		{"nor does it supersede its own attempt", "m0", model.Command{Type: model.CommandRun, Force: true}, "run m0", begin, `{"n":1} 0 false a1`},
		{"what was saved behind a removal stays", "m0", model.Command{Type: model.CommandRemove}, "removed m0", carryOut(put(t, "m0", 7)), `{"n":7} 0 false `},
		{"what was disabled behind it stays disabled", "m1", model.Command{Type: model.CommandEnable}, "enabled m1", carryOut(ask(model.CommandDisable, "m1")), `{"n":1} 0 true `},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := between(t, true, func(ctx context.Context, o Operator) error {
				results, err := steer(ctx, o, test.command, test.uid)
				failIf(t, !slices.Equal(results, []string{test.told}), "expected %s, found %s", test.told, results)
				return err
			}, test.others)[test.uid]
			failIf(t, got != test.want, "expected %s, found %s", test.want, got)
		})
	}
}

func TestASaveThatAskedForARefreshUnheardAsksForNoOtherBehindItsStart(t *testing.T) {
	r := put(t, "m0", 1)
	r.Command.Definition.Refresh = model.RefreshNow
	between(t, true, func(ctx context.Context, o Operator) error {
		err := Execute(ctx, o.Queue, []*Request{r})
		m := check.Got(o.Queue.Parts[0].Load(t.Context(), []string{"m0"}))(t)["m0"]
		failIf(t, r.Result != ResultUpdated || m.AttemptUID != "a1" || m.Again, "expected updated and a1, once; found %s, %s, again: %t", r.Result, m.AttemptUID, m.Again)
		return err
	}, func(q *store.Queue) { start(t, q, "m0", "a1"); takeInput(t, q) })
}

// takeInput takes what a worker would take.
func takeInput(t *testing.T, q *store.Queue) {
	t.Helper()
	part := q.Parts[0]
	must(t, part.Clients.Write.LPop(t.Context(), part.Keys.Input).Err())
}

func TestACommandThatGivesUpSaysWhatIsDoneAndHowToGoOn(t *testing.T) {
	for _, c := range patientCommands {
		t.Run(c.name, func(t *testing.T) {
			o := patientOne(t, testkit.Miniredis(t), 2, check.Limit, testkit.Hook(func(_ context.Context, commands []goredis.Cmder, _ func() error) error {
				return unanswer(commands)
			}))
			_, err := c.do(t, WithRetry(t.Context(), time.Millisecond, new(zerolog.Nop()), "; do this"), o)
			for _, want := range append(c.gaveUp, "i/o timeout", "asked again for 1ms; do this") {
				failIf(t, err == nil || !strings.Contains(hint.Add(err.Error(), err, hint.CommandLine), want), "expected %q, found %v", want, err)
			}
		})
	}
}

func TestARefusalOfRedisIsNotTriedAgain(t *testing.T) {
	for text, passes := range map[string]bool{"OOM command not allowed": false, "NOPERM no": false, "LOADING soon": true, "READONLY no": true} {
		var tries atomic.Int64
		o := patientOne(t, testkit.Miniredis(t), 2, check.Limit, testkit.Hook(func(_ context.Context, commands []goredis.Cmder, next func() error) error {
			if tries.Add(1) > 1 {
				return next()
			}
			err := redisError(text)
			for _, command := range commands {
				command.SetErr(err)
			}
			return err
		}))
		_, err := save(insisting(t), t, o)
		failIf(t, (err == nil) != passes, "%s: found %v", text, err)
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}
