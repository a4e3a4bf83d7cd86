package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestWhatChangesWhileItIsCheckedIsCheckedAgainAndGivenUpInTheEnd(t *testing.T) {
	clients := connect(t, testkit.Miniredis(t).Addr, ConnectOptions{})
	ctx, lost := t.Context(), errors.New("lost")
	write := func(pipe goredis.Pipeliner) { pipe.Set(ctx, "k", "ours", 0) }
	for name, test := range map[string]struct {
		conflicts int
		wants     bool
		fails     error
		checks    int
		written   bool
		err       error
	}{
		"nobody else writes":       {0, true, nil, 1, true, nil},
		"nothing to write":         {0, false, nil, 1, false, nil},
		"a check that fails":       {0, true, lost, 1, false, lost},
		"somebody writes twice":    {2, true, nil, 3, true, nil},
		"somebody writes and ends": {MaxConflicts - 1, true, nil, MaxConflicts, true, nil},
		"somebody goes on":         {MaxConflicts, true, nil, MaxConflicts, false, ErrConflicts},
	} {
		must(t, clients.Write.Set(ctx, "k", "before", 0).Err())
		checks := 0
		written, err := clients.WriteIf(ctx, func(*goredis.Tx) (bool, error) {
			if checks++; checks <= test.conflicts {
				must(t, clients.Write.Set(ctx, "k", "theirs", 0).Err())
			}
			return test.wants, test.fails
		}, write, "k")
		failIf(t, written != test.written || !errors.Is(err, test.err) || (err == nil) != (test.err == nil), "%s: got %t, %v", name, written, err)
		failIf(t, checks != test.checks, "%s: checked %d times, want %d", name, checks, test.checks)
		value := clients.Read.Get(ctx, "k").Val()
		failIf(t, (value == "ours") != test.written, "%s: the value is %s", name, value)
	}
}

func TestAScriptThatRedisDoesNotKnowIsLoadedAndRunOnceMore(t *testing.T) {
	script := LoadScript("txn.lua")
	unknown := redisError("NOSCRIPT No matching script")
	for name, test := range map[string]struct {
		load, first, second error
		want                error
		runs                int
	}{
		"it is known":         {nil, nil, nil, nil, 1},
		"another error":       {nil, redisError("OOM no"), nil, redisError("OOM no"), 1},
		"it is not known":     {nil, unknown, nil, nil, 2},
		"it stays unknown":    {nil, unknown, unknown, unknown, 2},
		"who may not load it": {redisError("NOPERM no"), unknown, nil, ErrNotLoaded, 1},
		"a load that fails":   {redisError("OOM no"), unknown, nil, redisError("OOM no"), 1},
	} {
		runs := 0
		client := answers(t, func(command goredis.Cmder) error {
			if command.Name() != "evalsha" {
				return test.load
			}
			runs++
			return []error{test.first, test.second}[runs-1]
		})
		err := RunScript(t.Context(), client, script, []string{"k"}).Err()
		failIf(t, (err == nil) != (test.want == nil) || err != nil && !strings.Contains(err.Error(), test.want.Error()) || runs != test.runs, "%s: got %v after %d runs", name, err, runs)
	}
}

func TestWhoWatchesClientsHearsOfEachScriptAndOfFaultsAlone(t *testing.T) {
	lost := errors.New("lost")
	var answer error
	client := noServer(t)
	now := time.UnixMilli(0)
	clock := func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	var calls []Call
	clients := &Clients{Read: client, Write: client, Block: client}
	clients.Watch(clock, func(call Call) { calls = append(calls, call) })
	client.AddHook(answering(func(goredis.Cmder) error { return answer }))
	ctx, script := t.Context(), LoadScript("txn.lua")
	run := func() { _ = client.EvalSha(ctx, script.Hash(), []string{"k"}).Err() }
	get := func() { _ = client.Get(ctx, "k").Err() }
	pipe := func() {
		both := client.Pipeline()
		both.Get(ctx, "k")
		_, _ = both.Exec(ctx)
	}
	for name, test := range map[string]struct {
		call   func()
		answer error
		want   []Call
	}{
		"a script":            {run, nil, []Call{{Script: "commit", Took: time.Second}}},
		"a script that fails": {run, lost, []Call{{Script: "commit", Took: time.Second, Err: lost}}},
		"an unknown script":   {run, redisError("NOSCRIPT"), []Call{{Script: "commit", Took: time.Second}}},
		"a foreign script":    {func() { _ = client.EvalSha(ctx, "abc", []string{"k"}).Err() }, nil, nil},
		"a command":           {get, nil, nil},
		"a missing key":       {get, goredis.Nil, nil},
		"a command fails":     {get, lost, []Call{{Err: lost}}},
		"several":             {pipe, nil, nil},
		"several fail":        {pipe, lost, []Call{{Err: lost}}},
	} {
		calls, answer = nil, test.answer
		test.call()
		same := len(calls) == len(test.want)
		for i := range test.want {
			same = same && calls[i].Script == test.want[i].Script && calls[i].Took == test.want[i].Took && errors.Is(calls[i].Err, test.want[i].Err)
		}
		failIf(t, !same, "%s: got %+v, want %+v", name, calls, test.want)
	}
}
