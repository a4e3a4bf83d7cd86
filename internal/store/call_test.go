package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/scripts"
)

// scriptCall is what Go passes to a script: the patterns of the keys, and how many arguments.
type scriptCall struct {
	keys    []string
	args    int
	repeats bool // by a client that sends it again when no reply comes
}

// callRecorder is a client that notes how scripts are run, by their digests.
type callRecorder struct {
	redis.UniversalClient
	calls   map[string][]scriptCall
	repeats bool
}

func (r callRecorder) EvalSha(ctx context.Context, digest string, keys []string, args ...any) *redis.Cmd {
	for i, key := range keys { // a label without a value
		keys[i] = strings.TrimSuffix(key, "=")
	}
	// An item passes three hashes of signatures.
	passed := slices.CompactFunc(slices.Clone(keys), func(a, b string) bool { return strings.Contains(a, ":error:") && strings.Contains(b, ":error:") })
	r.calls[digest] = append(r.calls[digest], scriptCall{passed, len(args), r.repeats})
	return r.UniversalClient.EvalSha(ctx, digest, keys, args...)
}

// recordCalls runs each method of Store that runs a script, in a queue whose keys are patterns.
func recordCalls(t *testing.T) map[string][]scriptCall {
	t.Helper()
	b := newBench(t, testkit.Miniredis(t))
	r := callRecorder{b.redis, map[string][]scriptCall{}, false}
	b.Keys, b.Clients = Keys{"<queue>"}, &Clients{Read: callRecorder{b.redis, r.calls, true}, Write: r, Block: r}
	ctx := t.Context()
	put, settle := Item{Transition: b.put("<uid>", "{}"), Reply: Reply{"<name>", "{}"}}, Item{UID: "<uid>", Counter: "stale", Message: Claimed{"ox"}}
	fleet := *put.Transition
	fleet.isLabels, fleet.decision.Next.ParkedBy = map[string]string{"<name>": ""}, "<name>"
	fleet.decision.Acquires, fleet.decision.Probe, fleet.decision.Next.Counted = []model.Acquire{{Name: "<name>"}}, true, "circuit:<key>"
	fleet.was.errorID, fleet.decision.Next.ErrorID = "<name>", "<name>x"
	put.Transition = &fleet
	var errs [27]error
	_, errs[0] = b.ReadDue(ctx, DueRequest{Limit: 1})
	_, errs[1] = b.Commit(ctx, Batch{Now: b.now, Owner: "<owner>", Items: []Item{put, put, settle}})
	_, errs[2] = b.MeasureCircuit(ctx, b.now)
	_, errs[3] = b.Claim(ctx, "<owner>", 1, testLease)
	_, errs[4] = b.Adopt(ctx, "<owner>", "<owner>", time.Second, 1)
	_, errs[5] = b.Pool().Take(ctx, TakeRequest{Owner: "<owner>", New: true, Most: 1})
	_, errs[6] = b.Pool().Answer(ctx, "<owner>", []Answer{{Message: "m"}, {Ends: true, Entry: "e"}})
	_, _, errs[7] = b.Pool().Heartbeat(ctx, "<owner>")
	_, errs[8] = b.Pool().Requeue(ctx, ExpiredWorker{"<owner>", time.UnixMilli(1)})
	_, errs[9] = b.Recount(ctx, PolicyUse{Name: "inline-x", recorded: "1 1"})
	errs[11] = b.receive(ctx, 1, []any{"7", "m"})
	_, errs[13] = b.MoveBulk(ctx, &Bulk{ID: "<name>"}, b.now)
	errs[14] = b.SampleHead(ctx, 1, b.now, time.Second)
	errs[15] = b.NoteBlockerChecks(ctx, []BlockerCheck{{Blocker: "<name>"}}, b.now)
	errs[19] = b.ForgetLimits(ctx, []EndedLimit{{"<name>", "{}"}})
	errs[26] = b.Forget(ctx, "<uid>", "<name>")
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	calls := map[string][]scriptCall{}
	for file, text := range scripts.Sources() {
		calls[file] = r.calls[redis.NewScript(text).Hash()]
	}
	return calls
}
