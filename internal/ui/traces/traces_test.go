package traces_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/ui/traces"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/worker"
)

func TestAWorkerLeavesTheTraceOfSomebodyElseAlone(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("nothing is to be told") }))
	t.Cleanup(collector.Close)
	sending, err := traces.New(t.Context(), collector.URL, "v1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	foreign := model.Traceparent("another", "x")
	attempt := &worker.Attempt{AttemptUID: "a1", Traceparent: foreign}
	if ended := sending.Run("bigtables")(attempt, time.Now()); ended != nil || attempt.Traceparent != foreign {
		t.Errorf("the attempt is within %s now", attempt.Traceparent)
	}
	if err := sending.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestACollectorThatIsAwayHoldsUpNothing(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.NotFoundHandler())
	collector.Close()
	sending, err := traces.New(t.Context(), collector.URL, "v1", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // more than are kept
		attempt := &worker.Attempt{AttemptUID: "a1", Traceparent: model.Traceparent("a1", model.SpanSchedule)}
		sending.Run("bigtables")(attempt, time.Now())(model.MessageSuccess)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = sending.Close(ctx) // it says so, or does not get that far
	testkit.AtEnd(func() { // what Close has left behind fails by itself, on a busy machine after seconds
		for until := time.Now().Add(check.Limit); goleak.Find() != nil && time.Now().Before(until); { // each look takes up to a second
			runtime.Gosched()
		}
	})
}
