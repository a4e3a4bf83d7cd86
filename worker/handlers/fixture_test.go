package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/worker"
)

var (
	must   = check.Must
	equal  = check.Equal
	failIf = check.FailIf
	stopIf = check.StopIf
)

func TestMain(m *testing.M) {
	redis.LogTo(nil)
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
	told := check.Got(worker.Try(ctx, handler, attempt))(t)
	for i := range told {
		told[i].UID, told[i].AttemptUID = "", ""
	}
	if len(told) == 0 {
		return nil, model.Message{}
	}
	return told[:len(told)-1], told[len(told)-1]
}

type feed struct {
	t       *testing.T
	dir     string
	url     string
	handler worker.Handler
	said    []model.Message
}

func newFeed(t *testing.T, serveFeed http.HandlerFunc, options FetchOptions) *feed {
	t.Helper()
	f := &feed{t: t, dir: filepath.Join(t.TempDir(), "feeds"), url: serve(t, serveFeed) + "/feed.csv"}
	options.Client = ownClient(t)
	handler := check.Got(Fetch(f.dir, options))(t)
	f.handler = handler
	return f
}

// fetch runs the handler as a pool would, and returns what the poller would understand.
func (f *feed) fetch(ctx context.Context, url string) model.Message {
	f.t.Helper()
	payload := check.Got(json.Marshal(map[string]string{"input_url": url}))(f.t)
	return f.try(ctx, &worker.Attempt{Payload: payload})
}

// fetchAs fetches by an attempt of its own.
func (f *feed) fetchAs(t *testing.T, a *worker.Attempt) model.Message {
	t.Helper()
	a.Payload = check.Got(json.Marshal(map[string]string{"input_url": f.url}))(t)
	return f.try(t.Context(), a)
}

func (f *feed) try(ctx context.Context, a *worker.Attempt) model.Message {
	f.t.Helper()
	a.UID, a.AttemptUID = "tbl/1", "a1"
	said, end := try(ctx, f.t, f.handler, a)
	f.said = append(f.said, said...)
	if ctx.Err() == nil {
		f.clean()
	}
	return end
}
