package scripts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

// scriptCall is what Go passed to a script: the patterns of the keys, and how many arguments.
type scriptCall struct {
	keys []string
	args int
}

// callRecorder is a hook that notes how scripts are run.
type callRecorder map[string][]scriptCall

func (callRecorder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (callRecorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r callRecorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	files := map[string]string{}
	for file, text := range Sources() {
		files[redis.NewScript(text).Hash()] = file
	}
	return func(ctx context.Context, command redis.Cmder) error {
		if words := command.Args(); command.Name() == "evalsha" {
			call, n := scriptCall{}, words[2].(int)
			for _, key := range words[3 : 3+n] {
				call.keys = append(call.keys, key.(string))
			}
			call.args = len(words) - 3 - n
			file := files[words[1].(string)]
			r[file] = append(r[file], call)
		}
		return next(ctx, command)
	}
}

// recordCalls runs each method of Store that runs a script, in a queue whose keys are patterns.
func recordCalls(t *testing.T) callRecorder {
	t.Helper()
	b, calls := newBench(t, testkit.Miniredis(t)), callRecorder{}
	b.Keys = Keys{"<queue>"}
	b.redis.AddHook(calls)
	ctx := t.Context()
	put, settle := Item{Transition: b.put("<uid>", "{}")}, Item{UID: "<uid>", Counter: "stale", Message: Claimed{"ox"}}
	var errs [9]error
	_, errs[0] = b.ReadDue(ctx, 1)
	_, errs[1] = b.Commit(ctx, Batch{Now: b.now, Owner: "<owner>", Items: []Item{put, put, settle}})
	_, errs[2] = b.MeasureBrake(ctx, b.now)
	_, _, errs[3] = b.Claim(ctx, "<owner>", 1)
	_, errs[4] = b.Adopt(ctx, "<owner>", "<owner>", b.now, 1)
	_, errs[5] = b.Take(ctx, Taking{Owner: "<owner>", New: true, Most: 1})
	_, errs[6] = b.Answer(ctx, "<owner>", []Answer{{Message: "m"}, {Ends: true, Entry: "e"}})
	_, _, errs[7] = b.Heartbeat(ctx, "<owner>")
	_, errs[8] = b.Requeue(ctx, ExpiredWorker{"<owner>", time.UnixMilli(1)})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return calls
}
