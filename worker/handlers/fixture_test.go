package handlers

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = testkit.Must
	equal  = testkit.Equal
	failIf = testkit.FailIf
	stopIf = testkit.StopIf
)

func TestMain(m *testing.M) {
	store.LogTo(nil)
	testkit.Main(m)
}

var whole = cmp.AllowUnexported(policy.Failure{})

func example() *worker.Attempt {
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	return &worker.Attempt{
		UID: "m", AttemptUID: "a1", AttemptNo: 2, DeadlineAt: at, PlannedAt: at.Add(time.Hour),
		Payload: json.RawMessage(`{"input_url":"http://x/?a=1&b=2"}`),
	}
}

// try runs a handler as a pool would and returns what the poller understands, without the uids.
func try(ctx context.Context, t *testing.T, handler worker.Handler, attempt *worker.Attempt) (statuses []model.Message, end model.Message) {
	t.Helper()
	told := testkit.Got(worker.Try(ctx, handler, attempt))(t)
	for i := range told {
		told[i].UID, told[i].AttemptUID = "", ""
	}
	if len(told) == 0 {
		return nil, model.Message{}
	}
	return told[:len(told)-1], told[len(told)-1]
}
