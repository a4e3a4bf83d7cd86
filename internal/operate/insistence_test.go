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
	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
)

var fixed = store.Config{Clock: func() time.Time { return time.Date(2026, 11, 26, 6, 0, 0, 0, time.UTC) }, JournalCap: store.None}

// saver is an operator of a queue with three models, whose calls go through a hook.
func saver(t *testing.T, server *testkit.Server, parts int, answers time.Duration, hook redis.Hook) Operator {
	t.Helper()
	options := server.Options()
	options.PoolSize, options.ReadTimeout = 1, answers
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	clients := &store.Clients{Read: client, Write: client, Block: client}
	must(t, store.Create(t.Context(), clients, fixed, parts))
	queue := testkit.Got(store.Open(t.Context(), clients, fixed))(t)
	must(t, queue.LoadScripts(t.Context()))
	must(t, Execute(t.Context(), queue, []*Request{put(t, "m0", 1), put(t, "m1", 1), put(t, "m2", 1)}))
	client.AddHook(hook)
	return Operator{Queue: queue, pause: time.Microsecond}
}

// save saves a new model, one that is as it was, others that are not, one of them twice, and a wish.
func save(t *testing.T, o Operator) (Tally, error) {
	t.Helper()
	requests := []*Request{put(t, "m0", 2), put(t, "m1", 1), put(t, "new", 1), put(t, "new", 2), put(t, "m2", 1), put(t, "soon", 1)}
	requests[4].Command.Definition.Refresh, requests[5].Command.Definition.Refresh = model.RefreshNow, model.RefreshNow
	return o.Save(t.Context(), func(take func(definitions.Model) error) error {
		for _, r := range requests {
			at := func(string) string { return "line" }
			if err := take(definitions.Model{Document: definitions.Document{Position: at}, Definition: r.Command.Definition}); err != nil {
				return err
			}
		}
		return nil
	}, func([]Outcome) error { return nil })
}

var saved = map[string]int{ResultCreated: 2, ResultUpdated: 3, ResultUnchanged: 1}

// errUnanswered is what go-redis says of a call that takes too long.
var errUnanswered = &net.OpError{Op: "read", Err: errors.New("i/o timeout")}

// unanswered lets calls with these numbers fail, before Redis has carried them out or after that. It has struck when there was the first of them.
func unanswered(late bool, numbers ...int64) (hook testkit.Hook, struck func() bool) {
	var calls atomic.Int64
	return func(_ context.Context, commands []redis.Cmder, next func() error) error {
		is := commands[0].Name() != "hello" && slices.Contains(numbers, calls.Add(1))
		if is && late || !is {
			if err := next(); !is {
				return err
			}
		}
		for _, command := range commands {
			command.SetErr(errUnanswered)
		}
		return errUnanswered
	}, func() bool { return calls.Load() >= numbers[0] }
}

func TestASaveOfWhichACallIsNotAnsweredSavesEachModelOnce(t *testing.T) {
	server := testkit.Miniredis(t)
	must(t, only(save(t, saver(t, server, 2, testkit.Limit, testkit.Hook(pass)))))
	want := server.Dump(t)
	for _, late := range []bool{false, true} {
		for n := int64(1); ; n++ {
			server.Flush(t)
			hook, struck := unanswered(late, n)
			tally, err := save(t, saver(t, server, 2, testkit.Limit, hook))
			must(t, err)
			if !struck() {
				failIf(t, n < 7, "expected of each part the clock, the models and the commit, found %d calls", n-1)
				break
			}
			diff := cmp.Diff(saved, tally.Results) + cmp.Diff(want, server.Dump(t))
			failIf(t, diff != "", "call %d is not answered, though carried out: %v (-want +got):\n%s", n, late, diff)
		}
	}
}

func TestThePatienceOfASaveBeginsAnewWithEachAnswer(t *testing.T) {
	hook, _ := unanswered(false, 1, 4) // of the read, which takes two, and then the commit
	tally, err := save(t, saver(t, testkit.Miniredis(t), 1, testkit.Limit, hook))
	must(t, err)
	diff := cmp.Diff(saved, tally.Results)
	failIf(t, diff != "", "(-want +got):\n%s", diff)
}

func pass(_ context.Context, _ []redis.Cmder, next func() error) error { return next() }

func only(_ Tally, err error) error { return err }

// A process that is stopped receives what is sent to it, and carries it out when it goes on: the commit of which the sender has heard nothing.
func TestARedisThatStandsStillOnlyDelaysASave(t *testing.T) {
	server := testkit.Redis(t)
	must(t, only(save(t, saver(t, server, 2, testkit.Limit, testkit.Hook(pass)))))
	want := server.Dump(t)
	server.Flush(t)
	goOn := func() { server.Signal(t, syscall.SIGCONT) }
	t.Cleanup(goOn)
	var stopped, silent atomic.Bool
	hook := func(_ context.Context, commands []redis.Cmder, next func() error) error {
		if commands[0].Name() != "evalsha" || stopped.Swap(true) {
			return next()
		}
		server.Signal(t, syscall.SIGSTOP)
		defer goOn()
		err := next()
		silent.Store(err != nil && !store.Answered(err))
		return err
	}
	tally, err := save(t, saver(t, server, 2, 200*time.Millisecond, testkit.Hook(hook)))
	must(t, err)
	diff := cmp.Diff(saved, tally.Results) + cmp.Diff(want, server.Dump(t))
	failIf(t, !silent.Load() || diff != "", "the stopped server left the call unanswered: %t (-want +got):\n%s", silent.Load(), diff)
}

// While nobody knows whether a commit was carried out, others go on.
func TestWhatOthersDoMeanwhileIsNotTakenForTheSave(t *testing.T) {
	for _, late := range []bool{false, true} {
		server := testkit.Miniredis(t)
		var once atomic.Bool
		var meanwhile func()
		o := saver(t, server, 1, testkit.Limit, testkit.Hook(func(_ context.Context, commands []redis.Cmder, next func() error) error {
			if commands[0].Name() != "evalsha" || once.Swap(true) {
				return next()
			}
			if late {
				failIf(t, next() != nil, "expected the commit carried out")
			}
			meanwhile()
			commands[0].SetErr(errUnanswered)
			return errUnanswered
		}))
		client := server.Client(t)
		other := testkit.Got(store.Open(t.Context(), &store.Clients{Read: client, Write: client, Block: client}, fixed))(t)
		meanwhile = func() {
			labelled := put(t, "m0", 2)
			labelled.Command.Definition.Labels = map[string]string{"by": "another"} // which alone differs from the save
			must(t, Execute(t.Context(), other, []*Request{labelled, put(t, "new", 9), ask(model.CommandDisable, "soon")}))
		}
		tally, err := save(t, o)
		must(t, err)
		got := map[string]string{}
		for uid, r := range testkit.Got(other.Parts[0].Load(t.Context(), []string{"m0", "new", "soon"}))(t) {
			got[uid] = fmt.Sprint(r.Payload, " ", len(r.Labels), " ", r.Disabled)
		}
		want := map[string]string{"m0": `{"n":2} 0 false`, "new": `{"n":2} 0 false`, "soon": fmt.Sprint(`{"n":1} 0 `, late)}
		diff := cmp.Diff(want, got) + cmp.Diff(map[string]int{ResultCreated: 1, ResultUpdated: 4, ResultUnchanged: 1}, tally.Results)
		failIf(t, diff != "", "carried out before the others came: %v (-want +got):\n%s", late, diff)
	}
}

func TestASaveThatGivesUpSaysWhatIsSavedAndHowToGoOn(t *testing.T) {
	dead := func(_ context.Context, commands []redis.Cmder, _ func() error) error {
		commands[0].SetErr(errUnanswered)
		return errUnanswered
	}
	o := saver(t, testkit.Miniredis(t), 2, testkit.Limit, testkit.Hook(dead))
	o.patience = time.Millisecond
	_, err := save(t, o)
	for _, want := range []string{"after 0 documents: ", "i/o timeout", "the same command goes on"} {
		failIf(t, err == nil || !strings.Contains(err.Error(), want), "expected %q, found %v", want, err)
	}
}

func TestARefusalOfRedisIsNotTriedAgain(t *testing.T) {
	for text, passes := range map[string]bool{"OOM command not allowed": false, "NOPERM no": false, "LOADING soon": true, "READONLY no": true} {
		mini := testkit.Miniredis(t)
		var tries atomic.Int64
		o := saver(t, mini, 2, testkit.Limit, testkit.Hook(func(_ context.Context, commands []redis.Cmder, next func() error) error {
			if tries.Add(1) > 1 {
				return next()
			}
			err := redisError(text)
			for _, command := range commands {
				command.SetErr(err)
			}
			return err
		}))
		_, err := save(t, o)
		failIf(t, (err == nil) != passes, "%s: found %v", text, err)
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}
